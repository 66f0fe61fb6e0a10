#include "plugins/common/netlink/route.hpp"

#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>

#include <algorithm>
#include <cstdio>

namespace gantry::netlink {

namespace {

constexpr std::uint8_t oper_up = 6; // IF_OPER_UP of linux/if.h, which does not get along with net/if.h
constexpr std::uint16_t change_flags = NLM_F_REQUEST;
constexpr std::uint16_t create_flags = change_flags | NLM_F_CREATE | NLM_F_EXCL;

std::uint8_t family_of(const ip_address& a) { return a.v6 ? AF_INET6 : AF_INET; }

void put_link_change(batch& b, const link_change& change) {
    if (change.master) b.put_u32(IFLA_MASTER, static_cast<std::uint32_t>(*change.master));
    if (change.mac) b.put(IFLA_ADDRESS, *change.mac);
    if (change.mtu) b.put_u32(IFLA_MTU, *change.mtu);
    if (change.group) b.put_u32(IFLA_GROUP, *change.group);
    if (change.alias) b.put(IFLA_IFALIAS, change.alias->data(), change.alias->size());
    if (change.no_link_local) {
        const auto families = b.open(IFLA_AF_SPEC);
        const auto v6 = b.open(AF_INET6);
        b.put_u8(IFLA_INET6_ADDR_GEN_MODE, IN6_ADDR_GEN_MODE_NONE);
    }
    if (change.hairpin || change.port_state) {
        const auto info = b.open(IFLA_LINKINFO);
        b.put_text(IFLA_INFO_SLAVE_KIND, "bridge");
        const auto port = b.open(IFLA_INFO_SLAVE_DATA);
        if (change.port_state) b.put_u8(IFLA_BRPORT_STATE, *change.port_state);
        if (change.hairpin) b.put_u8(IFLA_BRPORT_MODE, *change.hairpin ? 1 : 0);
    }
}

ifinfomsg header_for(std::int32_t index, const link_change& change) {
    ifinfomsg header{};
    header.ifi_index = index;
    if (change.up) {
        header.ifi_change = IFF_UP;
        header.ifi_flags = *change.up ? IFF_UP : 0;
    }
    return header;
}

link parse_link(const nlmsghdr& message) {
    link found;
    const auto* header = header_of<ifinfomsg>(message);
    if (!header) return found;
    found.index = header->ifi_index;
    found.up = header->ifi_flags & IFF_UP;
    for (const auto& a : attributes(message, sizeof *header)) {
        switch (a.type) {
        case IFLA_IFNAME: found.name = a.text(); break;
        case IFLA_IFALIAS: found.alias = a.text(); break;
        case IFLA_OPERSTATE: found.running = a.u8() == oper_up; break;
        case IFLA_MTU: found.mtu = a.u32(); break;
        case IFLA_GROUP: found.group = a.u32(); break;
        case IFLA_MASTER: found.master = static_cast<std::int32_t>(a.u32()); break;
        case IFLA_LINK: found.peer = static_cast<std::int32_t>(a.u32()); break;
        case IFLA_ADDRESS:
            if (a.data.size() == found.mac.size()) std::copy(a.data.begin(), a.data.end(), found.mac.begin());
            break;
        case IFLA_LINKINFO:
            if (const auto kind = a.nested().find(IFLA_INFO_KIND)) found.kind = kind->text();
            if (const auto slave = a.nested().find(IFLA_INFO_SLAVE_DATA))
                if (const auto state = slave->nested().find(IFLA_BRPORT_STATE)) found.port_state = state->u8();
            break;
        default: break;
        }
    }
    return found;
}

ip_address parse_address(std::uint8_t family, std::span<const std::uint8_t> bytes) {
    ip_address address{.v6 = family == AF_INET6};
    std::copy_n(bytes.begin(), std::min(bytes.size(), address.bytes().size()), address.raw.begin());
    return address;
}

result<std::optional<link>> get(socket& route, std::int32_t index, const std::string& name) {
    batch b;
    ifinfomsg header{};
    header.ifi_index = index;
    b.begin(RTM_GETLINK, NLM_F_REQUEST, header, "look up link " + (name.empty() ? "#" + std::to_string(index) : name));
    if (!name.empty()) b.put_text(IFLA_IFNAME, name);
    b.put_u32(IFLA_EXT_MASK, RTEXT_FILTER_SKIP_STATS);
    auto answer = route.request(b);
    if (!answer && answer.error().sys_errno == ENODEV) return std::optional<link>{};
    if (!answer) return std::move(answer).error();
    for (std::size_t i = 0; i < answer->count(); ++i)
        if ((*answer)[i].nlmsg_type == RTM_NEWLINK) return std::optional<link>{parse_link((*answer)[i])};
    return std::optional<link>{};
}

void put_address(batch& b, std::uint16_t type, std::uint16_t flags, std::int32_t index, const ip_network& network,
                 std::string label) {
    ifaddrmsg header{};
    header.ifa_family = family_of(network.address);
    header.ifa_prefixlen = network.prefix;
    header.ifa_index = static_cast<std::uint32_t>(index);
    if (network.address.v6 && type == RTM_NEWADDR) header.ifa_flags = IFA_F_NODAD;
    if (network.address.v6 && network.address.raw[0] == 0xfe && (network.address.raw[1] & 0xc0) == 0x80)
        header.ifa_scope = RT_SCOPE_LINK;
    b.begin(type, flags, header, std::move(label));
    b.put(IFA_LOCAL, network.address.bytes());
    b.put(IFA_ADDRESS, network.address.bytes());
}

} // namespace

std::string to_text(const mac_address& mac) {
    char buffer[18];
    std::snprintf(buffer, sizeof buffer, "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2], mac[3], mac[4],
                  mac[5]);
    return buffer;
}

void add_bridge(batch& b, const std::string& name, const mac_address& mac, std::uint32_t mtu) {
    b.begin(RTM_NEWLINK, create_flags, ifinfomsg{}, "add bridge " + name);
    b.put_text(IFLA_IFNAME, name);
    b.put(IFLA_ADDRESS, mac);
    b.put_u32(IFLA_MTU, mtu);
    const auto info = b.open(IFLA_LINKINFO);
    b.put_text(IFLA_INFO_KIND, "bridge");
    const auto data = b.open(IFLA_INFO_DATA);
    // Neighbour discovery is multicast: on a bridge without a querier, snooping can only lose it.
    b.put_u8(IFLA_BR_MCAST_SNOOPING, 0);
}

void add_veth(batch& b, const veth_spec& spec) {
    b.begin(RTM_NEWLINK, create_flags, ifinfomsg{}, "add link " + spec.name + " with peer " + spec.peer_name);
    b.put_text(IFLA_IFNAME, spec.name);
    b.put(IFLA_ADDRESS, spec.mac);
    b.put_u32(IFLA_MTU, spec.mtu);
    b.put_u32(IFLA_MASTER, static_cast<std::uint32_t>(spec.master));
    // One queue each: the kernel's default is one per possible CPU, kilobytes of memory per pod.
    b.put_u32(IFLA_NUM_TX_QUEUES, 1);
    b.put_u32(IFLA_NUM_RX_QUEUES, 1);
    const auto info = b.open(IFLA_LINKINFO);
    b.put_text(IFLA_INFO_KIND, "veth");
    const auto data = b.open(IFLA_INFO_DATA);
    const auto peer = b.open(VETH_INFO_PEER);
    const ifinfomsg header{};
    b.append(&header, sizeof header);
    b.put_text(IFLA_IFNAME, spec.peer_name);
    b.put(IFLA_ADDRESS, spec.peer_mac);
    b.put_u32(IFLA_MTU, spec.mtu);
    b.put_u32(IFLA_NUM_TX_QUEUES, 1);
    b.put_u32(IFLA_NUM_RX_QUEUES, 1);
    b.put_u32(IFLA_NET_NS_FD, static_cast<std::uint32_t>(spec.peer_netns));
}

void change_link(batch& b, std::int32_t index, const std::string& name, const link_change& change) {
    b.begin(RTM_NEWLINK, change_flags, header_for(index, change), "change link " + name);
    put_link_change(b, change);
}

void change_link(batch& b, const std::string& name, const link_change& change) {
    b.begin(RTM_NEWLINK, change_flags, header_for(0, change), "change link " + name);
    b.put_text(IFLA_IFNAME, name);
    put_link_change(b, change);
}

void delete_link(batch& b, const std::string& name) {
    b.begin(RTM_DELLINK, change_flags, ifinfomsg{}, "delete link " + name);
    b.put_text(IFLA_IFNAME, name);
}

void delete_group(batch& b, std::uint32_t group) {
    b.begin(RTM_DELLINK, change_flags, ifinfomsg{}, "delete the links of group " + std::to_string(group));
    b.put_u32(IFLA_GROUP, group);
}

void add_address(batch& b, std::int32_t index, const ip_network& network, const std::string& link_name) {
    put_address(b, RTM_NEWADDR, create_flags, index, network, "add address " + network.text() + " to " + link_name);
}

void delete_address(batch& b, std::int32_t index, const ip_network& network, const std::string& link_name) {
    put_address(b, RTM_DELADDR, change_flags, index, network,
                "delete address " + network.text() + " from " + link_name);
}

void add_route(batch& b, const route& wanted, const std::string& link_name) {
    rtmsg header{};
    header.rtm_family = family_of(wanted.destination.address);
    header.rtm_dst_len = wanted.destination.prefix;
    header.rtm_table = RT_TABLE_MAIN;
    header.rtm_protocol = RTPROT_STATIC;
    header.rtm_scope = wanted.gateway || wanted.destination.address.v6 ? RT_SCOPE_UNIVERSE : RT_SCOPE_LINK;
    header.rtm_type = RTN_UNICAST;
    b.begin(RTM_NEWROUTE, create_flags, header, "add route " + wanted.destination.text() + " by " + link_name);
    if (wanted.destination.prefix > 0) b.put(RTA_DST, wanted.destination.address.bytes());
    if (wanted.gateway) b.put(RTA_GATEWAY, wanted.gateway->bytes());
    b.put_u32(RTA_OIF, static_cast<std::uint32_t>(wanted.index));
}

result<std::optional<link>> get_link(socket& route, const std::string& name) { return get(route, 0, name); }
result<std::optional<link>> get_link(socket& route, std::int32_t index) { return get(route, index, {}); }

result<std::vector<link>> list_links(socket& route) {
    batch b;
    b.begin(RTM_GETLINK, NLM_F_REQUEST | NLM_F_DUMP, ifinfomsg{}, "list links");
    b.put_u32(IFLA_EXT_MASK, RTEXT_FILTER_SKIP_STATS);
    GANTRY_TRY(const auto answer, route.request(b));
    std::vector<link> links;
    for (std::size_t i = 0; i < answer.count(); ++i)
        if (answer[i].nlmsg_type == RTM_NEWLINK) links.push_back(parse_link(answer[i]));
    return links;
}

result<std::vector<address>> list_addresses(socket& route) {
    batch b;
    b.begin(RTM_GETADDR, NLM_F_REQUEST | NLM_F_DUMP, ifaddrmsg{}, "list addresses");
    GANTRY_TRY(const auto answer, route.request(b));
    std::vector<address> found;
    for (std::size_t i = 0; i < answer.count(); ++i) {
        const auto* header = header_of<ifaddrmsg>(answer[i]);
        if (answer[i].nlmsg_type != RTM_NEWADDR || !header ||
            (header->ifa_family != AF_INET && header->ifa_family != AF_INET6))
            continue;
        const attributes all(answer[i], sizeof *header);
        auto own = all.find(IFA_LOCAL);
        if (!own) own = all.find(IFA_ADDRESS);
        if (own)
            found.push_back({static_cast<std::int32_t>(header->ifa_index),
                             {parse_address(header->ifa_family, own->data), header->ifa_prefixlen}});
    }
    return found;
}

result<std::vector<netlink::route>> list_routes(socket& socket, bool v6) {
    batch b;
    rtmsg query{};
    query.rtm_family = v6 ? AF_INET6 : AF_INET;
    b.begin(RTM_GETROUTE, NLM_F_REQUEST | NLM_F_DUMP, query, "list routes");
    GANTRY_TRY(const auto answer, socket.request(b));
    std::vector<route> found;
    for (std::size_t i = 0; i < answer.count(); ++i) {
        const auto* header = header_of<rtmsg>(answer[i]);
        if (answer[i].nlmsg_type != RTM_NEWROUTE || !header || header->rtm_table != RT_TABLE_MAIN ||
            header->rtm_type != RTN_UNICAST)
            continue;
        const attributes all(answer[i], sizeof *header);
        route entry;
        entry.destination = {parse_address(header->rtm_family, {}), header->rtm_dst_len};
        if (const auto a = all.find(RTA_DST)) entry.destination.address = parse_address(header->rtm_family, a->data);
        if (const auto a = all.find(RTA_GATEWAY)) entry.gateway = parse_address(header->rtm_family, a->data);
        if (const auto a = all.find(RTA_OIF)) entry.index = static_cast<std::int32_t>(a->u32());
        found.push_back(entry);
    }
    return found;
}

result<std::optional<std::int32_t>> outgoing_link(socket& socket, const ip_address& destination) {
    batch b;
    rtmsg query{};
    query.rtm_family = family_of(destination);
    query.rtm_dst_len = destination.bits();
    b.begin(RTM_GETROUTE, NLM_F_REQUEST, query, "look up the route to " + destination.text());
    b.put(RTA_DST, destination.bytes());
    auto answer = socket.request(b);
    if (!answer && (answer.error().sys_errno == ENETUNREACH || answer.error().sys_errno == EHOSTUNREACH))
        return std::optional<std::int32_t>{};
    if (!answer) return std::move(answer).error();
    for (std::size_t i = 0; i < answer->count(); ++i) {
        if ((*answer)[i].nlmsg_type != RTM_NEWROUTE) continue;
        if (const auto out = attributes((*answer)[i], sizeof(rtmsg)).find(RTA_OIF))
            return std::optional<std::int32_t>{static_cast<std::int32_t>(out->u32())};
    }
    return std::optional<std::int32_t>{};
}

} // namespace gantry::netlink
