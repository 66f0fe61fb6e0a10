#include "plugins/cni-bridge/names.hpp"

#include <net/if.h>

#include <algorithm>
#include <cstdio>
#include <initializer_list>

namespace gantry::cni_bridge {

namespace {

constexpr std::size_t link_name_limit = IFNAMSIZ - 1;

/// FNV-1a over the parts, each ended by a byte that none of them holds.
std::uint64_t hash_of(std::initializer_list<std::string_view> parts) {
    std::uint64_t hash = 14695981039346656037u;
    const auto mix = [&](unsigned char byte) { hash = (hash ^ byte) * 1099511628211u; };
    for (const auto part : parts) {
        for (const char c : part) mix(static_cast<unsigned char>(c));
        mix(0);
    }
    return hash;
}

std::string hex(std::uint64_t value, int digits) {
    char buffer[17];
    std::snprintf(buffer, sizeof buffer, "%016llx", static_cast<unsigned long long>(value));
    return {buffer + 16 - digits, buffer + 16};
}

netlink::mac_address mac_from(std::uint8_t first, std::uint8_t second, const netlink::ip_address& address) {
    netlink::mac_address mac{first, second};
    if (!address.v6) {
        std::copy_n(address.raw.begin(), 4, mac.begin() + 2);
        return mac;
    }
    const std::uint64_t hash = hash_of({address.text()});
    for (std::size_t i = 0; i < 4; ++i) mac[2 + i] = static_cast<std::uint8_t>(hash >> (8 * i));
    return mac;
}

} // namespace

std::string bridge_name(const owner& who) {
    std::string name = "gt-" + who.node_instance;
    if (name.size() <= link_name_limit) return name;
    return name.substr(0, link_name_limit - 9) + "-" + hex(hash_of({who.node_instance}), 8);
}

std::string host_link_name(const owner& who, std::string_view container_id, std::string_view ifname) {
    return "gv" + hex(hash_of({who.node_instance, container_id, ifname}), 12);
}

std::string table_name(const owner& who) { return "gantry-" + who.node_instance; }

std::string bridge_alias(const owner& who) { return "gantry:" + who.node_instance + "/" + who.plugin; }

std::string link_alias(const owner& who, std::string_view container_id, std::string_view ifname) {
    std::string alias = bridge_alias(who) + "/";
    return alias.append(container_id).append("/").append(ifname);
}

std::string doomed_alias(const owner& who) { return bridge_alias(who) + "/:doomed"; }

std::uint32_t doomed_group(const owner& who) {
    return static_cast<std::uint32_t>(hash_of({doomed_alias(who)}) & 0x3fffffff) | 0x40000000;
}

bool is_link_of(const owner& who, std::string_view alias) { return alias.starts_with(bridge_alias(who) + "/"); }

netlink::mac_address mac_for(const netlink::ip_address& address) { return mac_from(0x0a, 0x58, address); }
netlink::mac_address host_mac_for(const netlink::ip_address& address) { return mac_from(0x0e, 0x58, address); }

netlink::ip_network link_local_for(const netlink::mac_address& mac) {
    netlink::ip_address address{.v6 = true};
    address.raw = {0xfe,   0x80,   0,    0,    0,      0,      0,     0, static_cast<std::uint8_t>(mac[0] ^ 0x02),
                   mac[1], mac[2], 0xff, 0xfe, mac[3], mac[4], mac[5]};
    return {address, 64};
}

} // namespace gantry::cni_bridge
