#include "plugins/cni-bridge/wire.hpp"

#include <linux/if_bridge.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <thread>

#include "plugins/cni-bridge/cni_error.hpp"
#include "plugins/cni-bridge/sysctl.hpp"
#include "plugins/common/netlink/netns.hpp"

namespace gantry::cni_bridge {

namespace {

bool has_v6(const wire& w) {
    return std::any_of(w.addresses.begin(), w.addresses.end(), [](const auto& a) { return a.address.address.v6; });
}

netlink::ip_network host_network(const netlink::ip_address& address) { return {address, address.bits()}; }
netlink::ip_network everything(bool v6) { return {{.v6 = v6}, 0}; }

result<void> make_pair(netlink::socket& route, int netns, const wire& w, const bridge& to) {
    netlink::batch b;
    netlink::add_veth(b, {.name = w.host_name,
                          .master = to.index(),
                          .mac = w.host_mac,
                          .peer_name = w.ifname,
                          .peer_mac = w.pod_mac,
                          .peer_netns = netns,
                          .mtu = to.mtu()});
    return route.send(b);
}

result<void> remove_now(netlink::socket& route, const std::string& name) {
    netlink::batch b;
    netlink::delete_link(b, name);
    auto removed = route.send(b);
    if (!removed && removed.error().sys_errno == ENODEV) return {};
    return removed;
}

/// The host's end of the pair that ifname of the pod is an end of, if it is on this host.
result<std::optional<netlink::link>> other_end(netlink::socket& route, netlink::socket& pod, const wire& w) {
    GANTRY_TRY(const auto inner, netlink::get_link(pod, w.ifname));
    if (!inner || inner->kind != "veth" || inner->peer == 0) return std::optional<netlink::link>{};
    GANTRY_TRY(auto outer, netlink::get_link(route, inner->peer));
    if (outer && (outer->kind != "veth" || outer->peer != inner->index)) outer.reset();
    return outer;
}

/// The pair exists when this succeeds. True: it was made now.
result<bool> ensure_pair(netlink::socket& route, netlink::socket& pod, int netns, const wire& w, const bridge& to) {
    auto made = make_pair(route, netns, w, to);
    if (made) return true;
    if (made.error().sys_errno != EEXIST) return std::move(made).error();
    // One of the two names is taken: by an earlier try, by a pair that waits for its removal, or by somebody else.
    GANTRY_TRY(const auto same_name, netlink::get_link(route, w.host_name));
    if (same_name && same_name->alias != w.alias && same_name->alias != w.doomed && !same_name->alias.empty())
        return cni_error(code::exists, cni_code::interface_taken,
                         "link " + w.host_name + " exists and is not ours: its alias is \"" + same_name->alias +
                             "\", wanted \"" + w.alias + "\"");
    GANTRY_TRY(const auto end, other_end(route, pod, w));
    if (end && end->name == w.host_name && end->alias != w.doomed) return false;
    if (end && end->alias == w.doomed) GANTRY_CHECK(remove_now(route, end->name));
    if (same_name) GANTRY_CHECK(remove_now(route, w.host_name));
    made = make_pair(route, netns, w, to);
    if (made) return true;
    if (made.error().sys_errno != EEXIST) return std::move(made).error();
    return cni_error(code::exists, cni_code::interface_taken,
                     "the pod's namespace already has a link " + w.ifname + " that is not ours");
}

result<void> set_up_host_end(netlink::socket& route, const wire& w) {
    netlink::batch b;
    // Hairpin: where br_netfilter is on, a packet of the pod to its own host port comes back by the port it came from.
    netlink::change_link(b, w.host_name, {.alias = w.alias, .no_link_local = has_v6(w), .hairpin = true});
    netlink::change_link(b, w.host_name, {.up = true});
    return route.send(b);
}

void fill_pod_batch(netlink::batch& b, const wire& w, std::int32_t index) {
    netlink::change_link(b, 1, "lo", {.up = true});
    // Duplicate address detection would hold the pod's first packets for a second; the pool cannot hand out duplicates.
    if (has_v6(w)) netlink::change_link(b, index, w.ifname, {.no_link_local = true});
    netlink::change_link(b, index, w.ifname, {.up = true});
    if (has_v6(w)) netlink::add_address(b, index, link_local_for(w.pod_mac), w.ifname);
    for (const auto& a : w.addresses) {
        const bool v6 = a.gateway.v6;
        netlink::add_address(b, index, a.address, w.ifname);
        netlink::add_route(b, {.destination = host_network(a.gateway), .gateway = {}, .index = index}, w.ifname);
        netlink::add_route(b, {.destination = everything(v6), .gateway = a.gateway, .index = index}, w.ifname);
    }
}

result<void> set_up_pod_end(netlink::socket& pod, netlink::netns_visitor& thread, int netns, const wire& w) {
    GANTRY_TRY(const auto inner, netlink::get_link(pod, w.ifname));
    if (!inner)
        return cni_error(code::not_found, cni_code::unknown_container,
                         "link " + w.ifname + " vanished from the pod's namespace");
    for (bool again = false;; again = true) {
        netlink::batch b;
        fill_pod_batch(b, w, inner->index);
        std::vector<int> outcomes;
        const auto sent = pod.send(b, outcomes);
        // What a try before this one has set is there already.
        const auto failed = std::find_if(outcomes.begin(), outcomes.end(), [](int n) { return n != 0 && n != EEXIST; });
        if (failed == outcomes.end()) return {};
        if (*failed != EACCES || !has_v6(w) || again) {
            error e = sys_error(b.label(static_cast<std::size_t>(failed - outcomes.begin())) + " in the pod", *failed);
            if (sent.error().sys_errno == *failed) e.message = sent.error().message + ", in the pod's namespace";
            return e;
        }
        // IPv6 is off by default in this host's new namespaces.
        GANTRY_CHECK(thread.run(netns, [&]() -> result<void> {
            GANTRY_CHECK(set_sysctl("net/ipv6/conf/" + w.ifname + "/disable_ipv6", "0"));
            return {};
        }));
    }
}

/// A link starts to carry packets when the kernel's link watch has seen both ends up: kernels from 6.14 on see to it
/// when asked for the link, older ones within milliseconds, a second at worst. What is sent before is lost.
result<void> wait_until_running(netlink::socket& s, const std::string& name) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(2);
    for (;;) {
        GANTRY_TRY(const auto link, netlink::get_link(s, name));
        if (link && link->running) return {};
        if (!link || std::chrono::steady_clock::now() > deadline)
            return cni_error(code::unavailable, cni_code::try_again,
                             "link " + name + (link ? " does not come up" : " vanished") +
                                 " while the pod is being attached");
        std::this_thread::sleep_for(std::chrono::microseconds(500));
    }
}

} // namespace

wire wire_for(const lease& l, const settings& config, const owner& who) {
    wire w{.host_name = host_link_name(who, l.container_id, l.ifname),
           .alias = link_alias(who, l.container_id, l.ifname),
           .doomed = doomed_alias(who),
           .doomed_group = doomed_group(who),
           .ifname = l.ifname,
           .addresses = {}};
    for (const auto& address : l.addresses) {
        const auto& family = address.v6 ? config.v6 : config.v4;
        if (family) w.addresses.push_back({host_network(address), family->gateway});
    }
    if (!l.addresses.empty()) {
        w.host_mac = host_mac_for(l.addresses.front());
        w.pod_mac = mac_for(l.addresses.front());
    }
    return w;
}

result<void> connect(netlink::socket& route, netlink::netns_visitor& thread, int netns, const wire& w,
                     const bridge& to) {
    GANTRY_TRY(auto pod, netlink::socket::open_in(thread, netns, NETLINK_ROUTE));
    GANTRY_TRY(const bool made, ensure_pair(route, pod, netns, w, to));
    auto done = set_up_host_end(route, w);
    if (done) done = set_up_pod_end(pod, thread, netns, w);
    if (done) done = wait_until_running(pod, w.ifname);
    if (done) done = wait_until_running(route, w.host_name);
    if (done) done = wait_until_running(route, to.name());
    if (done || !made) return done;
    if (auto removed = remove_now(route, w.host_name); !removed)
        done.error().message += "; and then: " + removed.error().message;
    return done;
}

result<void> check(netlink::socket& route, netlink::netns_visitor& thread, int netns, const wire& w, const bridge& to) {
    std::string wrong;
    const auto note = [&](bool bad, const std::string& what) {
        if (bad) wrong += (wrong.empty() ? "" : "; ") + what;
    };
    GANTRY_TRY(auto pod, netlink::socket::open_in(thread, netns, NETLINK_ROUTE));
    GANTRY_TRY(const auto outer, netlink::get_link(route, w.host_name));
    note(!outer, "the host has no link " + w.host_name);
    if (outer) {
        note(outer->alias != w.alias, "link " + w.host_name + " has alias \"" + outer->alias + "\"");
        note(!outer->up, "link " + w.host_name + " is down");
        note(outer->master != to.index(), "link " + w.host_name + " is not a port of bridge " + to.name());
    }
    GANTRY_TRY(const auto inner, netlink::get_link(pod, w.ifname));
    note(!inner, "the pod has no link " + w.ifname);
    if (inner) {
        note(!inner->up, "link " + w.ifname + " of the pod is down");
        note(outer && (inner->peer != outer->index || outer->peer != inner->index),
             "link " + w.ifname + " of the pod is not the peer of " + w.host_name);
        GANTRY_TRY(const auto addresses, netlink::list_addresses(pod));
        for (const auto& a : w.addresses) {
            note(std::none_of(addresses.begin(), addresses.end(),
                              [&](const auto& one) { return one.index == inner->index && one.network == a.address; }),
                 "link " + w.ifname + " of the pod lacks address " + a.address.text());
            GANTRY_TRY(const auto routes, netlink::list_routes(pod, a.gateway.v6));
            note(std::none_of(routes.begin(), routes.end(),
                              [&](const auto& one) {
                                  return one.destination.prefix == 0 && one.index == inner->index &&
                                         one.gateway == a.gateway;
                              }),
                 "the pod has no default route by " + a.gateway.text());
        }
    }
    if (wrong.empty()) return {};
    return cni_error(code::not_found, cni_code::check_failed, wrong);
}

result<std::vector<std::string>> reattach(netlink::socket& route, const std::vector<wire>& wires, const bridge& to) {
    std::vector<std::string> done;
    if (wires.empty()) return done;
    GANTRY_TRY(const auto links, netlink::list_links(route));
    std::map<std::string_view, const netlink::link*> by_name;
    for (const auto& link : links) by_name.emplace(link.name, &link);
    netlink::batch b;
    for (const auto& w : wires) {
        const auto found = by_name.find(w.host_name);
        if (found == by_name.end() || found->second->alias != w.alias) continue;
        if (found->second->master == to.index() && found->second->up) continue;
        netlink::change_link(b, w.host_name, {.up = true, .master = to.index()});
        netlink::change_link(b, w.host_name, {.hairpin = true});
        done.push_back("link " + w.host_name + ": made a port of bridge " + to.name() + " again");
    }
    GANTRY_CHECK(route.send(b));
    return done;
}

result<bool> disconnect(netlink::socket& route, const wire& w) {
    netlink::batch b;
    // Of the states that carry nothing this is the one that a bridge without STP leaves alone.
    netlink::change_link(b, w.host_name,
                         {.alias = w.doomed, .group = w.doomed_group, .port_state = BR_STATE_LISTENING});
    const auto cut = route.send(b);
    if (cut) return true;
    if (cut.error().sys_errno == ENODEV) return false;
    GANTRY_CHECK(remove_now(route, w.host_name)); // not a port of a bridge any more
    return false;
}

result<void> delete_doomed(netlink::socket& route, const owner& who) {
    GANTRY_TRY(const auto links, netlink::list_links(route));
    const std::string alias = doomed_alias(who);
    const std::uint32_t group = doomed_group(who);
    bool group_is_ours = true;
    std::vector<std::string> names;
    for (const auto& link : links) {
        if (link.alias == alias) names.push_back(link.name);
        group_is_ours = group_is_ours && (link.group == group) == (link.alias == alias);
    }
    if (names.empty()) return {};
    if (!group_is_ours) {
        for (const auto& name : names) GANTRY_CHECK(remove_now(route, name));
        return {};
    }
    netlink::batch b;
    netlink::delete_group(b, group);
    auto removed = route.send(b);
    if (!removed && removed.error().sys_errno == ENODEV) return {};
    return removed;
}

} // namespace gantry::cni_bridge
