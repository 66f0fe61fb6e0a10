// Kernel parameters of the calling thread's network namespace.
#pragma once

#include <string>
#include <string_view>

#include "gantry/sdk/result.hpp"

namespace gantry::cni_bridge {

/// path below /proc/sys ("net/ipv4/ip_forward"). [blocks]
result<std::string> read_sysctl(const std::string& path);

/// Writes only when the value differs, since some of these writes have side effects on every link. True if it wrote.
result<bool> set_sysctl(const std::string& path, std::string_view value);

/// Turns IPv6 forwarding on. A host that forwards stops listening to router advertisements (accept_ra 1), and would
/// lose its own default route: links that listen so far are told to go on (accept_ra 2).
result<bool> enable_v6_forwarding();

} // namespace gantry::cni_bridge
