// The two jobs that unpack one layer, each in a process of its own: one reads and decompresses (no rights at all), one
// untars (rights to create files, rooted at the layer's directory). A parser bug is alone with its layer, and the two
// overlap in time.
#pragma once

#include <string>

#include "base/json.hpp"
#include "gantry/sdk/result.hpp"
#include "plugins/cri-native/helper/applier.hpp"
#include "plugins/cri-native/helper/archive_file.hpp"
#include "plugins/cri-native/helper/report.hpp"
#include "plugins/cri-native/helper/request.hpp"

namespace gantry::cri_helper {

/// Bytes of `where` in the archive, decompressed, into `out`; reports progress and, at last, the digest of the packed
/// bytes as {"type":"pumped","digest":...}.
result<void> pump_layer(int archive_fd, const member& where, const std::string& diff_id, int out,
                        const load_request& limits, const reporter& report);

/// A tar stream from `in` into `dir`; reports {"type":"unpacked","diffID":...} with the summary.
result<void> unpack_layer(int in, const std::string& dir, const load_request& request, budget& usage,
                          const reporter& report);

base::json::object to_json(const layer_summary& summary);
result<layer_summary> summary_in(const base::json::object& message);

} // namespace gantry::cri_helper
