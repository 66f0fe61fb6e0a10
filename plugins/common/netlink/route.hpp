// rtnetlink(7): links, addresses and routes, as messages appended to a batch and as tables read back.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plugins/common/netlink/ip.hpp"
#include "plugins/common/netlink/socket.hpp"

namespace gantry::netlink {

using mac_address = std::array<std::uint8_t, 6>;
/// "0a:58:0a:58:00:02"
std::string to_text(const mac_address& mac);

struct link {
    std::int32_t index = 0;
    std::string name{};
    std::string kind{}; ///< "bridge", "veth", ...
    std::string alias{};
    mac_address mac{};
    std::uint32_t mtu = 0;
    bool up = false;      ///< administratively (IFF_UP)
    bool running = false; ///< carries packets (IF_OPER_UP)
    std::uint32_t group = 0;
    std::int32_t master = 0;
    std::int32_t peer = 0;                    ///< IFLA_LINK: for a veth the index of its peer, in the peer's namespace
    std::optional<std::uint8_t> port_state{}; ///< of a bridge port (BR_STATE_*)
};

struct address {
    std::int32_t index = 0;
    ip_network network{};
};

struct route {
    ip_network destination{}; ///< prefix 0 for the default route
    std::optional<ip_address> gateway{};
    std::int32_t index = 0;
};

struct veth_spec {
    std::string name;
    std::int32_t master = 0; ///< index of the bridge it becomes a port of
    mac_address mac{};
    std::string peer_name;
    mac_address peer_mac{};
    int peer_netns = -1; ///< fd of the namespace the peer is born in
    std::uint32_t mtu = 0;
};

/// What to change of an existing link; members that are not set stay as they are.
struct link_change {
    std::optional<bool> up{};
    std::optional<std::string> alias{};
    std::optional<std::uint32_t> mtu{};
    std::optional<mac_address> mac{};
    std::optional<std::int32_t> master{}; ///< index of the bridge it becomes a port of
    std::optional<std::uint32_t> group{};
    bool no_link_local = false;               ///< IPv6 address generation off; only while the link is down
    std::optional<bool> hairpin{};            ///< of a bridge port
    std::optional<std::uint8_t> port_state{}; ///< of a bridge port (BR_STATE_*)
};

// Each appends one message.
void add_bridge(batch& b, const std::string& name, const mac_address& mac, std::uint32_t mtu);
void add_veth(batch& b, const veth_spec& spec);
void change_link(batch& b, std::int32_t index, const std::string& name, const link_change& change);
/// The same by name, for a link that an earlier message of the batch makes.
void change_link(batch& b, const std::string& name, const link_change& change);
void delete_link(batch& b, const std::string& name);
/// All links of a group, for the price of one: a single wait for RCU. ENODEV when there is none.
void delete_group(batch& b, std::uint32_t group);
/// IPv6 addresses are added without duplicate address detection.
void add_address(batch& b, std::int32_t index, const ip_network& network, const std::string& link_name);
void delete_address(batch& b, std::int32_t index, const ip_network& network, const std::string& link_name);
/// A unicast route of the main table; without a gateway the destination is on the link.
void add_route(batch& b, const route& wanted, const std::string& link_name);

/// Nothing when there is no such link.
result<std::optional<link>> get_link(socket& route, const std::string& name);
result<std::optional<link>> get_link(socket& route, std::int32_t index);
result<std::vector<link>> list_links(socket& route);
result<std::vector<address>> list_addresses(socket& route);
result<std::vector<netlink::route>> list_routes(socket& route, bool v6);
/// The link that packets to `destination` would leave by; nothing when there is no route.
result<std::optional<std::int32_t>> outgoing_link(socket& route, const ip_address& destination);

} // namespace gantry::netlink
