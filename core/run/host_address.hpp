// The address by which this node is reached, for status.hostIP.
#pragma once

#include <string>

namespace gantry::core {

/// The source address the kernel would use towards the default route (IPv4, else IPv6), else the first address of a link
/// that is up and not loopback, else empty. Sends nothing.
std::string host_address();

} // namespace gantry::core
