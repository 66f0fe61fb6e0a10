// ctnetlink: finding and forgetting flows of the connection tracking table.
#pragma once

#include <cstdint>
#include <functional>

#include "plugins/common/netlink/ip.hpp"
#include "plugins/common/netlink/socket.hpp"

namespace gantry::netlink {

struct flow {
    ip_address destination{}; ///< that the first packet was sent to
    std::uint16_t port = 0;   ///< its destination port
    ip_address answering{};   ///< source of the answers: where the packets really go
    std::uint16_t answering_port = 0;
};

/// Forgets every flow of `protocol` (IPPROTO_*) to destination port `port` in one family for which `doomed` is true;
/// returns how many. The kernel selects by port (5.8 or later), otherwise the whole table is read.
result<std::size_t> forget_flows(socket& netfilter, bool v6, std::uint8_t protocol, std::uint16_t port,
                                 const std::function<bool(const flow&)>& doomed);

} // namespace gantry::netlink
