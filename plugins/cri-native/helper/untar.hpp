// Reads a tar stream (ustar, pax, GNU; sparse files) with libarchive's reader, nothing else switched on, into an
// applier.
#pragma once

#include <functional>
#include <string_view>

#include "gantry/sdk/result.hpp"
#include "plugins/cri-native/helper/applier.hpp"

namespace gantry::cri_helper {

/// The next bytes of a stream, valid until the next call; empty at its end.
using byte_stream = std::function<result<std::string_view>()>;

/// Applies every entry, then reads the stream to its end (a digest covers what follows the end-of-archive mark too).
result<layer_summary> untar(const byte_stream& stream, applier& layer);

/// libarchive turns pax names into the locale's bytes: this makes that the identity for UTF-8. Once per process, while
/// the host's files are still visible.
result<void> prepare_untar();

} // namespace gantry::cri_helper
