#include "plugins/cni-bridge/nat.hpp"

#include <algorithm>
#include <iterator>

#include "plugins/cni-bridge/cni_error.hpp"

namespace gantry::cni_bridge {

namespace nft = netlink::nft;

namespace {

using bytes = std::vector<std::uint8_t>;

void append(bytes& to, std::span<const std::uint8_t> from) { to.insert(to.end(), from.begin(), from.end()); }
void append_protocol(bytes& to, std::uint8_t protocol) {
    append(to, std::initializer_list<std::uint8_t>{protocol, 0, 0, 0});
}
void append_port(bytes& to, std::uint16_t port) {
    append(to, std::initializer_list<std::uint8_t>{static_cast<std::uint8_t>(port >> 8),
                                                   static_cast<std::uint8_t>(port), 0, 0});
}

void add_mapping(nat_elements& to, const port_mapping& mapping, const netlink::ip_address& pod) {
    if (mapping.host_ip && mapping.host_ip->v6 != pod.v6) return;
    const bool one_address = mapping.host_ip && !mapping.host_ip->is_unspecified();
    nft::element e;
    if (one_address) append(e.key, mapping.host_ip->bytes());
    append_protocol(e.key, mapping.protocol);
    append_port(e.key, mapping.host_port);
    append(e.data, pod.bytes());
    append_port(e.data, mapping.container_port);
    to[std::string(one_address ? "hostip" : "port") + (pod.v6 ? "6" : "4")].push_back(std::move(e));
}

void add_lease(nat_elements& to, const lease& l) {
    if (l.ports.empty()) return;
    for (const auto& address : l.addresses) {
        for (const auto& mapping : l.ports) add_mapping(to, mapping, address);
        nft::element itself;
        append(itself.key, address.bytes());
        append(itself.key, address.bytes());
        to[address.v6 ? "hairpin6" : "hairpin4"].push_back(std::move(itself));
    }
}

nat_elements sorted(nat_elements all) {
    for (auto& [set, elements] : all) std::sort(elements.begin(), elements.end());
    return all;
}

std::vector<nft::element> minus(const std::vector<nft::element>& from, const std::vector<nft::element>& what) {
    std::vector<nft::element> rest;
    std::set_difference(from.begin(), from.end(), what.begin(), what.end(), std::back_inserter(rest));
    return rest;
}

template <class T>
bool same(std::vector<T> a, std::vector<T> b) {
    std::sort(a.begin(), a.end());
    std::sort(b.begin(), b.end());
    return a == b;
}

/// Rules chain by chain: their order counts within a chain only.
std::vector<nft::listed_rule> by_chain(std::vector<nft::listed_rule> rules) {
    std::stable_sort(rules.begin(), rules.end(), [](const auto& a, const auto& b) { return a.chain < b.chain; });
    return rules;
}

} // namespace

nat_elements elements_of(const lease& l) {
    nat_elements all;
    add_lease(all, l);
    return sorted(std::move(all));
}

nat_elements elements_of(const lease_table& leases) {
    nat_elements all;
    for (const auto& [key, l] : leases) add_lease(all, l);
    return sorted(std::move(all));
}

nat::nat(const settings& config, const owner& who)
    : config_(config), table_(table_name(who)), bridge_(bridge_name(who)) {}

result<void> nat::add(netlink::socket& netfilter, const lease& l) const {
    if (l.ports.empty()) return {};
    netlink::batch b;
    nft::start(b);
    for (const auto& [set, elements] : elements_of(l)) nft::add_elements(b, table_, set, elements);
    nft::finish(b);
    return netfilter.commit(b);
}

result<void> nat::remove(netlink::socket& netfilter, const lease& l) const {
    if (l.ports.empty()) return {};
    netlink::batch b;
    nft::start(b);
    for (const auto& [set, elements] : elements_of(l)) nft::delete_elements(b, table_, set, elements);
    nft::finish(b);
    auto removed = netfilter.commit(b);
    if (removed || removed.error().sys_errno != ENOENT) return removed;
    // Part of it was gone: what is left goes by comparison.
    netlink::batch rest;
    nft::start(rest);
    for (const auto& [set, elements] : elements_of(l)) {
        GANTRY_TRY(const auto held, nft::list_elements(netfilter, table_, set));
        std::vector<nft::element> both;
        std::set_intersection(elements.begin(), elements.end(), held.begin(), held.end(), std::back_inserter(both));
        nft::delete_elements(rest, table_, set, both);
    }
    if (rest.count() == 1) return {};
    nft::finish(rest);
    return netfilter.commit(rest);
}

result<void> nat::check(netlink::socket& netfilter, const lease& l) const {
    for (const auto& [set, elements] : elements_of(l)) {
        GANTRY_TRY(const auto held, nft::list_elements(netfilter, table_, set));
        if (!minus(elements, held).empty())
            return cni_error(code::not_found, cni_code::check_failed,
                             "map " + set + " of nftables table inet " + table_ + " lacks a host port of " +
                                 l.holder());
    }
    return {};
}

result<std::string> nat::skeleton_fault(netlink::socket& netfilter) const {
    GANTRY_TRY(const bool exists, nft::has_table(netfilter, table_));
    if (!exists) return std::string("the table is missing");
    netlink::batch reference;
    const auto wanted = build(reference);
    GANTRY_TRY(auto chains, nft::list_chains(netfilter, table_));
    if (!same(chains, wanted.chains)) return std::string("its chains are not as made");
    GANTRY_TRY(auto sets, nft::list_sets(netfilter, table_));
    if (!same(sets, wanted.sets)) return std::string("its sets are not as made");
    GANTRY_TRY(auto rules, nft::list_rules(netfilter, table_));
    if (by_chain(std::move(rules)) != by_chain(wanted.rules)) return std::string("its rules are not as made");
    return std::string();
}

result<void> nat::replace(netlink::socket& netfilter, const lease_table& leases) const {
    netlink::batch b;
    nft::start(b);
    nft::add_table(b, table_); // so that the deletion finds one
    nft::delete_table(b, table_);
    build(b);
    for (const auto& [set, elements] : elements_of(leases)) nft::add_elements(b, table_, set, elements);
    nft::finish(b);
    return netfilter.commit(b);
}

result<std::vector<std::string>> nat::audit(netlink::socket& netfilter, const lease_table& leases) const {
    std::vector<std::string> wrong;
    GANTRY_TRY(const auto fault, skeleton_fault(netfilter));
    if (!fault.empty()) {
        GANTRY_CHECK(replace(netfilter, leases));
        wrong.push_back("nftables table inet " + table_ + ": " + fault + "; made anew");
        return wrong;
    }
    auto wanted = elements_of(leases);
    netlink::batch b;
    nft::start(b);
    netlink::batch reference;
    for (const auto& set : build(reference).sets) {
        GANTRY_TRY(const auto held, nft::list_elements(netfilter, table_, set));
        const auto missing = minus(wanted[set], held);
        const auto extra = minus(held, wanted[set]);
        nft::delete_elements(b, table_, set, extra);
        nft::add_elements(b, table_, set, missing);
        if (!missing.empty() || !extra.empty())
            wrong.push_back("set " + set + " of nftables table inet " + table_ + ": " + std::to_string(missing.size()) +
                            " elements missing, " + std::to_string(extra.size()) + " foreign; put right");
    }
    if (wrong.empty()) return wrong;
    nft::finish(b);
    GANTRY_CHECK(netfilter.commit(b));
    return wrong;
}

} // namespace gantry::cni_bridge
