#include "plugins/cni-bridge/network.hpp"

#include <fcntl.h>
#include <linux/netfilter/nfnetlink.h>
#include <unistd.h>

#include <algorithm>
#include <climits>

#include "plugins/cni-bridge/cni_error.hpp"
#include "plugins/cni-bridge/flows.hpp"

namespace gantry::cni_bridge {

namespace {

std::optional<address_pool> pool_of(const std::optional<family_settings>& family, std::uint64_t seed) {
    if (!family) return std::nullopt;
    return address_pool(family->first, family->last, family->gateway, seed);
}

/// How people and `ip netns` call the namespace: the path it was opened by, or "net:[4026532201]".
std::string name_of_netns(int netns) {
    char target[PATH_MAX];
    const ssize_t size = ::readlink(("/proc/self/fd/" + std::to_string(netns)).c_str(), target, sizeof target);
    return size > 0 ? std::string(target, static_cast<std::size_t>(size)) : std::string();
}

/// Failures of the kernel and the disk.
error kernel_error(error e) { return with_cni(std::move(e), cni_code::io_failure); }

} // namespace

network::network(settings config, environment env)
    : config_(std::move(config)), env_(std::move(env)), bridge_(config_, env_.who), nat_(config_, env_.who),
      store_(env_.state_dir + "/leases"), pool4_(pool_of(config_.v4, env_.seed)),
      pool6_(pool_of(config_.v6, env_.seed)) {}

result<void> network::start() {
    GANTRY_CHECK(load_leases());
    GANTRY_CHECK(open());
    return ensure_base();
}

result<void> network::open() {
    if (!thread_) {
        GANTRY_TRY(auto visitor, netlink::netns_visitor::here());
        thread_.emplace(std::move(visitor));
    }
    GANTRY_CHECK(thread_->is_home());
    if (!route_) {
        GANTRY_TRY(auto opened, netlink::socket::open(NETLINK_ROUTE));
        route_.emplace(std::move(opened));
    }
    if (!netfilter_) {
        GANTRY_TRY(auto opened, netlink::socket::open(NETLINK_NETFILTER));
        netfilter_.emplace(std::move(opened));
    }
    if (!watch_) {
        GANTRY_TRY(auto opened, netlink::socket::open(NETLINK_NETFILTER));
        GANTRY_CHECK(opened.join(NFNLGRP_NFTABLES));
        watch_.emplace(std::move(opened));
    }
    return {};
}

result<void> network::load_leases() {
    if (loaded_) return {};
    GANTRY_TRY(auto found, store_.load());
    for (const auto& why : found.dropped) log("dropped a broken lease: " + why);
    for (auto& l : found.leases) {
        for (const auto& address : l.addresses)
            if (auto* pool = pool_for(address)) pool->take(address);
        ports_.add(l);
        leases_.emplace(l.key(), std::move(l));
    }
    loaded_ = true;
    return {};
}

result<void> network::ensure_base() {
    base_ok_ = false;
    GANTRY_CHECK(load_leases());
    GANTRY_CHECK(open());
    GANTRY_TRY(const auto linked, bridge_.ensure(*route_));
    for (const auto& line : linked) log(line);
    std::vector<wire> wires;
    for (const auto& [key, l] : leases_) wires.push_back(wire_for(l, config_, env_.who));
    GANTRY_TRY(const auto reattached, reattach(*route_, wires, bridge_));
    for (const auto& line : reattached) log(line);
    GANTRY_TRY(const auto repaired, nat_.audit(*netfilter_, leases_));
    for (const auto& line : repaired) log(line);
    base_ok_ = true;
    return {};
}

result<void> network::audit() { return ensure_base(); }

address_pool* network::pool_for(const netlink::ip_address& address) {
    auto& pool = address.v6 ? pool6_ : pool4_;
    return pool ? &*pool : nullptr;
}

result<std::vector<netlink::ip_address>> network::allocate(const add_request& request) {
    std::vector<netlink::ip_address> given;
    const auto undo = [&](error e) {
        for (const auto& address : given) pool_for(address)->release(address);
        return e;
    };
    for (const auto& address : request.wanted_addresses) {
        auto* pool = pool_for(address);
        if (!pool || !pool->contains(address))
            return undo(cni_error(code::invalid, cni_code::invalid_config,
                                  "the requested address " + address.text() + " is outside the range " +
                                      (pool ? pool->text() : "(this family is off)")));
        if (!pool->take(address))
            return undo(cni_error(code::exists, cni_code::no_address,
                                  "the requested address " + address.text() + " is in use"));
        given.push_back(address);
    }
    for (auto* pool : {pool4_ ? &*pool4_ : nullptr, pool6_ ? &*pool6_ : nullptr}) {
        const bool v6 = pool6_ && pool == &*pool6_;
        if (!pool || std::any_of(given.begin(), given.end(), [&](const auto& a) { return a.v6 == v6; })) continue;
        const auto address = pool->allocate();
        if (!address)
            return undo(cni_error(code::resource, cni_code::no_address,
                                  "no free address for a pod in range " + pool->text() +
                                      "; delete pods, widen the range, or let GC free stale leases"));
        given.push_back(*address);
    }
    return given;
}

result<lease> network::new_lease(const add_request& request) {
    const attachment who{request.container_id, request.ifname};
    GANTRY_CHECK(ports_.check(who, request.ports, leases_));
    lease l{.container_id = request.container_id,
            .ifname = request.ifname,
            .pod = request.pod,
            .ports = request.ports,
            .sandbox = name_of_netns(request.netns)};
    for (const auto& port : l.ports) {
        const bool served = !port.host_ip || (port.host_ip->v6 ? pool6_ : pool4_).has_value();
        if (!served)
            return cni_error(code::invalid, cni_code::invalid_config,
                             "hostPort " + to_text(port) + " is of an IP family that this node's pods do not have");
    }
    GANTRY_TRY(l.addresses, allocate(request));
    if (auto saved = store_.save(l); !saved) {
        for (const auto& address : l.addresses) pool_for(address)->release(address);
        return kernel_error(std::move(saved).error());
    }
    leases_.emplace(who, l);
    ports_.add(l);
    return l;
}

void network::forget(const lease& l) {
    for (const auto& address : l.addresses)
        if (auto* pool = pool_for(address)) pool->release(address);
    ports_.remove(l);
    leases_.erase(l.key());
}

result<void> network::attach(const lease& l, const add_request& request, const step_fn& step) {
    const wire w = wire_for(l, config_, env_.who);
    auto connected = connect(*route_, *thread_, request.netns, w, bridge_);
    if (!connected && (connected.error().sys_errno == ENODEV || connected.error().sys_errno == EINVAL)) {
        // Perhaps the bridge is not what it was at the last audit.
        GANTRY_CHECK(ensure_base());
        connected = connect(*route_, *thread_, request.netns, w, bridge_);
    }
    GANTRY_CHECK(std::move(connected));
    step("links");
    if (l.ports.empty()) return {};
    auto mapped = nat_.add(*netfilter_, l);
    if (!mapped) mapped = ensure_base(); // the audit adds what the leases ask for
    GANTRY_CHECK(std::move(mapped));
    GANTRY_CHECK(forget_unmapped_flows(*netfilter_, *route_, l));
    step("ports");
    return {};
}

result<attached> network::add(const add_request& request, const step_fn& step) {
    if (!base_ok_)
        if (auto base = ensure_base(); !base) return with_cni(std::move(base).error(), cni_code::unavailable);
    const attachment who{request.container_id, request.ifname};
    const auto known = leases_.find(who);
    const bool replay = known != leases_.end();
    lease l;
    if (replay) {
        l = known->second;
        if (l.ports != request.ports)
            return cni_error(code::exists, cni_code::invalid_parameters,
                             l.holder() + " is attached already, with other host ports; DEL it first");
    } else {
        GANTRY_TRY(l, new_lease(request));
    }
    step("lease");
    if (auto done = attach(l, request, step); !done) {
        error e = kernel_error(std::move(done).error());
        if (!replay)
            if (auto undone = release(l, [](std::string_view) {}); !undone)
                e.message += "; undoing it: " + undone.error().message;
        return e;
    }
    return attached{.held = l, .links = wire_for(l, config_, env_.who), .mtu = bridge_.mtu()};
}

result<void> network::release(const lease& l, const step_fn& step) {
    GANTRY_CHECK(nat_.remove(*netfilter_, l));
    GANTRY_CHECK(forget_flows_to(*netfilter_, l));
    if (!l.ports.empty()) step("ports");
    GANTRY_TRY(const bool left, disconnect(*route_, wire_for(l, config_, env_.who)));
    doomed_ = doomed_ || left;
    step("links");
    GANTRY_CHECK(store_.remove(l));
    forget(lease(l)); // a copy: l may be the table's own
    step("lease");
    return {};
}

result<void> network::del(const attachment& who, const step_fn& step) {
    if (auto ready = load_leases(); !ready) return kernel_error(std::move(ready).error());
    if (auto ready = open(); !ready) return kernel_error(std::move(ready).error());
    const auto known = leases_.find(who);
    // Without a lease there may still be links, when the state directory was lost.
    const lease l = known == leases_.end() ? lease{.container_id = who.first, .ifname = who.second} : known->second;
    auto released = release(l, step);
    if (!released) return kernel_error(std::move(released).error());
    return {};
}

result<void> network::check(const attachment& who, int netns) {
    if (auto ready = load_leases(); !ready) return kernel_error(std::move(ready).error());
    if (auto ready = open(); !ready) return kernel_error(std::move(ready).error());
    const auto known = leases_.find(who);
    if (known == leases_.end())
        return cni_error(code::not_found, cni_code::unknown_container,
                         "container " + who.first + " has no lease for " + who.second + "; ADD it");
    GANTRY_TRY(const auto found, netlink::get_link(*route_, bridge_.name()));
    if (!found) return cni_error(code::not_found, cni_code::check_failed, "the host has no bridge " + bridge_.name());
    if (auto linked = cni_bridge::check(*route_, *thread_, netns, wire_for(known->second, config_, env_.who), bridge_);
        !linked)
        return kernel_error(std::move(linked).error());
    if (auto mapped = nat_.check(*netfilter_, known->second); !mapped) return kernel_error(std::move(mapped).error());
    return {};
}

result<void> network::status() {
    const bool serving = base_ok_;
    if (auto base = ensure_base(); !base) {
        error e = std::move(base).error();
        e.detail.clear();
        return with_cni(std::move(e),
                        serving || !leases_.empty() ? cni_code::unavailable_limited : cni_code::unavailable);
    }
    for (const auto* pool : {pool4_ ? &*pool4_ : nullptr, pool6_ ? &*pool6_ : nullptr})
        if (pool && pool->used() >= pool->capacity())
            return cni_error(code::resource, cni_code::unavailable,
                             "no free address for a pod in range " + pool->text());
    return {};
}

result<void> network::gc(const std::set<attachment>& valid) {
    if (auto base = ensure_base(); !base) return kernel_error(std::move(base).error());
    result<void> outcome;
    const auto keep_first = [&](result<void> one) {
        if (!one && outcome) outcome = kernel_error(std::move(one).error());
    };
    std::vector<lease> stale;
    for (const auto& [key, l] : leases_)
        if (!valid.contains(key)) stale.push_back(l);
    for (const auto& l : stale) {
        log("gc: freeing " + l.holder() + ", which is not a valid attachment");
        keep_first(release(l, [](std::string_view) {}));
    }
    // Links whose lease is lost.
    std::set<std::string> wanted;
    for (const auto& [id, ifname] : valid) wanted.insert(link_alias(env_.who, id, ifname));
    GANTRY_TRY(const auto links, netlink::list_links(*route_));
    for (const auto& link : links) {
        if (!is_link_of(env_.who, link.alias) || wanted.contains(link.alias)) continue;
        wire w;
        w.host_name = link.name;
        w.doomed = doomed_alias(env_.who);
        w.doomed_group = doomed_group(env_.who);
        auto cut = disconnect(*route_, w);
        if (!cut) {
            keep_first(std::move(cut).error());
            continue;
        }
        doomed_ = doomed_ || *cut;
    }
    return outcome;
}

result<void> network::delete_doomed() {
    doomed_ = false;
    return cni_bridge::delete_doomed(*route_, env_.who);
}

bool network::table_was_touched() {
    bool touched = false;
    const auto read = watch_->drain(
        [&](const nlmsghdr& message) {
            const auto* header = netlink::header_of<nfgenmsg>(message);
            if (!header || header->nfgen_family != NFPROTO_INET) return;
            // The table's name is attribute 1 of every nf_tables message.
            const auto table = netlink::attributes(message, sizeof *header).find(NFTA_TABLE_NAME);
            touched = touched || (table && table->text() == nat_.table());
        },
        netfilter_->port());
    return touched || !read; // what was lost may have been ours
}

} // namespace gantry::cni_bridge
