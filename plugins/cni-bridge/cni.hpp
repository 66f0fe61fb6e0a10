// CNI 1.1.0 in JSON: what gantry.network/1 carries (see gantry/abi/draft/network.h).
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "plugins/cni-bridge/network.hpp"

namespace gantry::cni_bridge {

/// The request of ADD, DEL and CHECK; netns is left out. Errors name the field and its value.
result<add_request> parse_request(std::string_view bytes);

/// The valid attachments of a GC request.
result<std::set<attachment>> parse_valid_attachments(std::string_view bytes);

/// The success result of an ADD (CNI 1.1.0 section 5).
std::string result_of(const attached& pod, const bridge& host);

} // namespace gantry::cni_bridge
