// Linux capabilities of a container: the default set, and what a request adds and drops.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gantry/sdk/result.hpp"

namespace gantry::cri_native {

using capability_mask = std::uint64_t; ///< bit N is capability number N of linux/capability.h

/// What a container gets when it asks for nothing: the set that Docker and containerd agree on.
capability_mask default_capabilities();

/// Number of a capability from "CAP_NET_ADMIN" or "NET_ADMIN", whatever its case.
std::optional<int> parse_capability(std::string_view name);

/// "CAP_NET_ADMIN"; "CAP_<number>" for numbers without a name here.
std::string capability_name(int number);

struct capability_request {
    bool privileged = false;
    std::vector<std::string> add{};
    std::vector<std::string> drop{};
    std::vector<std::string> add_ambient{};
    capability_mask available = 0; ///< the node's own bounding set: nothing beyond it can be given
};

struct capability_sets {
    capability_mask bounding = 0; ///< also permitted and effective; inheritable stays empty (CVE-2022-29162)
    capability_mask ambient = 0;
    capability_mask missing = 0; ///< asked for by name, but the node itself lacks it
};

/// Drops beat adds, of ALL as by name; only what is added by name survives a drop of ALL.
/// code::invalid for a name that is no capability.
result<capability_sets> resolve_capabilities(const capability_request& request);

} // namespace gantry::cri_native
