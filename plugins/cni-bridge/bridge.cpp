#include "plugins/cni-bridge/bridge.hpp"

#include <unistd.h>

#include <algorithm>

#include "plugins/cni-bridge/cni_error.hpp"
#include "plugins/cni-bridge/sysctl.hpp"

namespace gantry::cni_bridge {

namespace {

constexpr std::uint32_t default_mtu = 1500;
/// Any address of the world outside (RFC 5737, RFC 3849), to ask for the default route; nothing is sent there.
const netlink::ip_address outside_v4{.v6 = false, .raw = {203, 0, 113, 1}};
const netlink::ip_address outside_v6{.v6 = true, .raw = {0x20, 0x01, 0x0d, 0xb8}};

} // namespace

netlink::mac_address bridge::mac() const { return mac_for(config_.families().front()->gateway); }

result<std::uint32_t> bridge::wanted_mtu(netlink::socket& route) const {
    if (config_.mtu != 0) return config_.mtu;
    for (const auto& outside : {outside_v4, outside_v6}) {
        if (outside.v6 && ::access("/proc/sys/net/ipv6", F_OK) != 0) continue;
        GANTRY_TRY(const auto index, netlink::outgoing_link(route, outside));
        if (!index) continue;
        GANTRY_TRY(const auto link, netlink::get_link(route, *index));
        if (link && link->mtu >= default_mtu / 2 && link->kind != "bridge")
            return std::min<std::uint32_t>(link->mtu, 65535);
    }
    return default_mtu;
}

result<void> bridge::check_overlap(netlink::socket& route, std::int32_t own) const {
    GANTRY_TRY(const auto addresses, netlink::list_addresses(route));
    for (const auto& one : addresses) {
        if (one.index == own) continue;
        for (const auto* family : config_.families()) {
            const auto& subnet = family->subnet;
            if (!subnet.overlaps(one.network)) continue;
            GANTRY_TRY(const auto link, netlink::get_link(route, one.index));
            if (!link) continue;
            // A wider network around ours is common (a cloud's VPC) and routes work: the longer prefix wins.
            const bool gantry = link->alias.starts_with("gantry:");
            if (!gantry && one.network.prefix < subnet.prefix && !subnet.contains(one.network.address)) continue;
            return cni_error(code::exists, cni_code::invalid_config,
                             "subnet " + subnet.text() + " of bridge " + name_ + " overlaps with address " +
                                 one.network.text() + " of link " + link->name +
                                 (gantry ? " (" + link->alias + ")" : "") +
                                 "; give this node's cni-bridge another subnet");
        }
    }
    return {};
}

result<netlink::link> bridge::make(netlink::socket& route) const {
    GANTRY_CHECK(check_overlap(route, 0));
    GANTRY_TRY(const auto mtu, wanted_mtu(route));
    netlink::batch b;
    netlink::add_bridge(b, name_, mac(), mtu);
    netlink::change_link(b, name_, {.alias = bridge_alias(who_)});
    GANTRY_CHECK(route.send(b));
    GANTRY_TRY(auto made, netlink::get_link(route, name_));
    if (!made)
        return cni_error(code::unavailable, cni_code::try_again,
                         "bridge " + name_ + " vanished right after it was made");
    return *std::move(made);
}

result<void> bridge::ensure_link(netlink::socket& route, const netlink::link& found, std::vector<std::string>& done) {
    const std::string alias = bridge_alias(who_);
    const bool unmarked = found.alias.empty() && found.mac == mac();
    if (found.kind != "bridge" || (found.alias != alias && !unmarked))
        return cni_error(code::exists, cni_code::invalid_config,
                         "link " + name_ + " exists and is not this plugin's bridge: kind \"" + found.kind +
                             "\", alias \"" + found.alias + "\", wanted \"" + alias +
                             "\"; remove it or change node.instance");
    netlink::link_change change;
    if (found.alias != alias) change.alias = alias;
    if (found.mac != mac()) change.mac = mac();
    if (config_.mtu != 0 && found.mtu != config_.mtu) change.mtu = config_.mtu;
    if (!found.up) change.up = true;
    index_ = found.index;
    mtu_ = change.mtu.value_or(found.mtu);
    if (!change.alias && !change.mac && !change.mtu && !change.up) return {};
    netlink::batch b;
    netlink::change_link(b, found.index, name_, change);
    GANTRY_CHECK(route.send(b));
    done.push_back("bridge " + name_ + ": set" + (change.up ? " up" : "") + (change.mac ? " hardware address" : "") +
                   (change.mtu ? " mtu" : "") + (change.alias ? " alias" : ""));
    return {};
}

result<void> bridge::ensure_addresses(netlink::socket& route, std::vector<std::string>& done) const {
    GANTRY_TRY(const auto addresses, netlink::list_addresses(route));
    netlink::batch b;
    for (const auto* family : config_.families()) {
        const netlink::ip_network wanted{family->gateway, family->subnet.prefix};
        bool there = false;
        for (const auto& one : addresses) {
            if (one.index != index_ || one.network.address.v6 != wanted.address.v6) continue;
            const bool link_local = one.network.address.v6 && one.network.address.raw[0] == 0xfe;
            if (one.network == wanted) {
                there = true;
            } else if (!link_local) {
                netlink::delete_address(b, index_, one.network, name_);
                done.push_back("bridge " + name_ + ": removed address " + one.network.text());
            }
        }
        if (there) continue;
        GANTRY_CHECK(check_overlap(route, index_));
        netlink::add_address(b, index_, wanted, name_);
        done.push_back("bridge " + name_ + ": added address " + wanted.text());
    }
    return route.send(b);
}

result<void> bridge::ensure_sysctls(std::vector<std::string>& done) const {
    if (config_.v4) {
        GANTRY_TRY(const bool forwarding, set_sysctl("net/ipv4/ip_forward", "1"));
        if (forwarding) done.push_back("set net.ipv4.ip_forward to 1");
        GANTRY_CHECK(set_sysctl("net/ipv4/conf/" + name_ + "/forwarding", "1"));
        // Host ports on 127.0.0.1; chain `guard` keeps pods away from the host's loopback.
        GANTRY_CHECK(set_sysctl("net/ipv4/conf/" + name_ + "/route_localnet", "1"));
    }
    if (config_.v6) {
        GANTRY_CHECK(set_sysctl("net/ipv6/conf/" + name_ + "/disable_ipv6", "0"));
        // While the bridge's own link-local address is in doubt, no pod can be asked for its hardware address.
        GANTRY_CHECK(set_sysctl("net/ipv6/conf/" + name_ + "/accept_dad", "0"));
        GANTRY_TRY(const bool forwarding, enable_v6_forwarding());
        if (forwarding) done.push_back("set net.ipv6.conf.all.forwarding to 1, accept_ra to 2 where it was 1");
        GANTRY_CHECK(set_sysctl("net/ipv6/conf/" + name_ + "/forwarding", "1"));
        GANTRY_CHECK(set_sysctl("net/ipv6/conf/" + name_ + "/accept_ra", "0"));
    }
    return {};
}

result<std::vector<std::string>> bridge::ensure(netlink::socket& route) {
    std::vector<std::string> done;
    GANTRY_TRY(auto found, netlink::get_link(route, name_));
    if (!found) {
        GANTRY_TRY(found, make(route));
        done.push_back("made bridge " + name_ + " with mtu " + std::to_string(found->mtu));
    }
    GANTRY_CHECK(ensure_sysctls(done));
    GANTRY_CHECK(ensure_link(route, *found, done));
    GANTRY_CHECK(ensure_addresses(route, done));
    return done;
}

} // namespace gantry::cni_bridge
