// The table's chains and rules. In nft's language, for bridge gt-main and the default config:
//
//   chain guard      { type filter hook prerouting priority raw
//                      iifname "gt-main" ip daddr 127.0.0.0/8 drop }
//   chain redirects  { type filter hook output priority filter
//                      oifname "gt-main" icmp type redirect drop ; oifname "gt-main" icmpv6 type nd-redirect drop }
//   chain prerouting { type nat hook prerouting priority dstnat ; fib daddr type local jump hostports }
//   chain output     { type nat hook output priority dstnat     ; fib daddr type local jump hostports }
//   chain hostports  { dnat ip to ip daddr . meta l4proto . th dport map @hostip4 ; dnat ip to meta l4proto . th dport
//   map @port4 ; the same for ip6 } chain postrouting{ type nat hook postrouting priority srcnat
//                      oifname "gt-main" ip saddr 127.0.0.0/8 masquerade   (host to its own host port by loopback)
//                      ip saddr . ip daddr @hairpin4 masquerade            (pod to itself by its host port)
//                      oifname != "gt-main" ip saddr 10.88.0.0/16 masquerade fully-random }
#include "plugins/cni-bridge/nat.hpp"

#include <linux/icmp.h>
#include <linux/if.h>
#include <linux/netfilter/nf_nat.h>
#include <linux/rtnetlink.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace gantry::cni_bridge {

namespace nft = netlink::nft;

namespace {

constexpr std::uint8_t icmpv6_redirect = 137; // RFC 4861 section 4.5
constexpr std::int32_t priority_raw = -300, priority_dstnat = -100, priority_filter = 0, priority_srcnat = 100;

/// Where the addresses lie in a packet's network header.
struct header_layout {
    std::uint8_t family;
    std::uint32_t source, destination, size;
};
constexpr header_layout layout_v4{NFPROTO_IPV4, 12, 16, 4};
constexpr header_layout layout_v6{NFPROTO_IPV6, 8, 24, 16};
constexpr const header_layout& layout_of(bool v6) { return v6 ? layout_v6 : layout_v4; }

void match_family(nft::rule& r, bool v6) {
    const std::array<std::uint8_t, 1> family{layout_of(v6).family};
    r.meta(NFT_META_NFPROTO, nft::word(0)).equal(nft::word(0), family);
}

std::array<std::uint8_t, IFNAMSIZ> padded_name(const std::string& link) {
    std::array<std::uint8_t, IFNAMSIZ> name{};
    std::memcpy(name.data(), link.data(), std::min(link.size(), name.size() - 1));
    return name;
}

void match_link(nft::rule& r, std::uint32_t meta_key, const std::string& link, bool equal = true) {
    r.meta(meta_key, nft::word(0));
    equal ? r.equal(nft::word(0), padded_name(link)) : r.not_equal(nft::word(0), padded_name(link));
}

void match_network(nft::rule& r, std::uint32_t offset, const netlink::ip_network& network) {
    r.payload(NFT_PAYLOAD_NETWORK_HEADER, offset, layout_of(network.address.v6).size, nft::word(0));
    const auto mask = network.mask();
    if (network.prefix < network.address.bits()) r.bit_and(nft::word(0), mask.bytes());
    r.equal(nft::word(0), network.base().bytes());
}

void match_source(nft::rule& r, const netlink::ip_network& network) {
    match_family(r, network.address.v6);
    match_network(r, layout_of(network.address.v6).source, network);
}

const netlink::ip_network loopback_v4{{.v6 = false, .raw = {127}}, 8};
const netlink::ip_network loopback_v6{{.v6 = true, .raw = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}}, 128};

std::uint32_t concatenated(std::initializer_list<nft::data_type> types) { return nft::concatenation(types); }

std::vector<nft::set_spec> sets_of(bool v6) {
    using enum nft::data_type;
    const auto address = v6 ? ipv6_addr : ipv4_addr;
    const std::uint32_t size = layout_of(v6).size;
    const std::string suffix = v6 ? "6" : "4";
    const std::uint32_t target = concatenated({address, inet_service});
    return {{"port" + suffix, concatenated({inet_proto, inet_service}), 8, target, size + 4},
            {"hostip" + suffix, concatenated({address, inet_proto, inet_service}), size + 8, target, size + 4},
            {"hairpin" + suffix, concatenated({address, address}), 2 * size}};
}

} // namespace

nat_skeleton nat::build(netlink::batch& b) const {
    nat_skeleton made;
    nft::add_table(b, table_);
    std::uint32_t id = 0;
    for (const bool v6 : {false, true}) {
        for (const auto& set : sets_of(v6)) {
            nft::add_set(b, table_, set, ++id);
            made.sets.push_back(set.name);
        }
    }
    const auto chain = [&](const char* name, const std::optional<nft::hook>& at) {
        nft::add_chain(b, table_, name, at);
        made.chains.push_back({name, at});
    };
    chain("hostports", {});
    chain("guard", nft::hook{"filter", NF_INET_PRE_ROUTING, priority_raw});
    chain("redirects", nft::hook{"filter", NF_INET_LOCAL_OUT, priority_filter});
    chain("prerouting", nft::hook{"nat", NF_INET_PRE_ROUTING, priority_dstnat});
    chain("output", nft::hook{"nat", NF_INET_LOCAL_OUT, priority_dstnat});
    chain("postrouting", nft::hook{"nat", NF_INET_POST_ROUTING, priority_srcnat});
    if (config_.isolate) chain("isolation", nft::hook{"filter", NF_INET_FORWARD, priority_filter});
    build_guards(b, made);
    build_ports(b, made);
    build_masquerade(b, made);
    return made;
}

void nat::build_guards(netlink::batch& b, nat_skeleton& made) const {
    {
        // route_localnet, which host ports on 127.0.0.1 need, would else open the host's loopback to pods
        // (CVE-2020-8558).
        nft::rule r(b, table_, "guard");
        match_link(r, NFT_META_IIFNAME, bridge_);
        match_family(r, false);
        match_network(r, layout_v4.destination, loopback_v4);
        made.rules.push_back({"guard", r.verdict(NF_DROP).finish()});
    }
    // Pods reach each other through this host; told of a shorter way they would bypass its NAT on the way back.
    for (const auto& [protocol, type] : {std::pair<std::uint8_t, std::uint8_t>{IPPROTO_ICMP, ICMP_REDIRECT},
                                         std::pair<std::uint8_t, std::uint8_t>{IPPROTO_ICMPV6, icmpv6_redirect}}) {
        nft::rule r(b, table_, "redirects");
        match_link(r, NFT_META_OIFNAME, bridge_);
        const std::array<std::uint8_t, 1> wanted_protocol{protocol}, wanted_type{type};
        r.meta(NFT_META_L4PROTO, nft::word(0)).equal(nft::word(0), wanted_protocol);
        r.payload(NFT_PAYLOAD_TRANSPORT_HEADER, 0, 1, nft::word(0)).equal(nft::word(0), wanted_type);
        made.rules.push_back({"redirects", r.verdict(NF_DROP).finish()});
    }
    if (!config_.isolate) return;
    constexpr std::array<std::uint8_t, 3> gantry_bridges{'g', 't', '-'};
    for (const auto& [ours, theirs] :
         {std::pair{NFT_META_IIFNAME, NFT_META_OIFNAME}, std::pair{NFT_META_OIFNAME, NFT_META_IIFNAME}}) {
        nft::rule r(b, table_, "isolation");
        match_link(r, static_cast<std::uint32_t>(ours), bridge_);
        match_link(r, static_cast<std::uint32_t>(theirs), bridge_, false);
        r.meta(static_cast<std::uint32_t>(theirs), nft::word(0)).equal(nft::word(0), gantry_bridges);
        made.rules.push_back({"isolation", r.verdict(NF_DROP).finish()});
    }
}

void nat::build_ports(netlink::batch& b, nat_skeleton& made) const {
    std::array<std::uint8_t, 4> local{};
    const std::uint32_t type_local = RTN_LOCAL;
    std::memcpy(local.data(), &type_local, sizeof type_local);
    for (const auto* chain : {"prerouting", "output"}) {
        nft::rule r(b, table_, chain);
        r.destination_type(nft::word(0)).equal(nft::word(0), local);
        made.rules.push_back({chain, r.jump("hostports").finish()});
    }
    for (const bool v6 : {false, true}) {
        const auto& layout = layout_of(v6);
        const std::uint32_t words = layout.size / 4;
        for (const bool by_host_ip : {true, false}) {
            nft::rule r(b, table_, "hostports");
            match_family(r, v6);
            std::uint32_t at = 0;
            if (by_host_ip) {
                r.payload(NFT_PAYLOAD_NETWORK_HEADER, layout.destination, layout.size, nft::word(0));
                at = words;
            }
            r.meta(NFT_META_L4PROTO, nft::word(at)).payload(NFT_PAYLOAD_TRANSPORT_HEADER, 2, 2, nft::word(at + 1));
            r.lookup(std::string(by_host_ip ? "hostip" : "port") + (v6 ? "6" : "4"), nft::word(0), nft::word(0));
            made.rules.push_back({"hostports", r.dnat(layout.family, nft::word(0), nft::word(words)).finish()});
        }
    }
}

void nat::build_masquerade(netlink::batch& b, nat_skeleton& made) const {
    const std::string chain = "postrouting";
    for (const auto& loopback : {loopback_v4, loopback_v6}) {
        nft::rule r(b, table_, chain);
        match_link(r, NFT_META_OIFNAME, bridge_);
        match_source(r, loopback);
        made.rules.push_back({chain, r.masquerade(0).finish()});
    }
    for (const bool v6 : {false, true}) {
        const auto& layout = layout_of(v6);
        nft::rule r(b, table_, chain);
        match_family(r, v6);
        r.payload(NFT_PAYLOAD_NETWORK_HEADER, layout.source, layout.size, nft::word(0));
        r.payload(NFT_PAYLOAD_NETWORK_HEADER, layout.destination, layout.size, nft::word(layout.size / 4));
        r.lookup(v6 ? "hairpin6" : "hairpin4", nft::word(0));
        made.rules.push_back({chain, r.masquerade(0).finish()});
    }
    if (!config_.masquerade) return;
    for (const auto* family : config_.families()) {
        for (const auto& destination : config_.not_masqueraded) {
            if (destination.address.v6 != family->subnet.address.v6) continue;
            nft::rule r(b, table_, chain);
            match_source(r, family->subnet);
            match_network(r, layout_of(destination.address.v6).destination, destination);
            made.rules.push_back({chain, r.verdict(NFT_RETURN).finish()});
        }
        nft::rule r(b, table_, chain);
        match_link(r, NFT_META_OIFNAME, bridge_, false);
        match_source(r, family->subnet);
        made.rules.push_back({chain, r.masquerade(NF_NAT_RANGE_PROTO_RANDOM_FULLY).finish()});
    }
}

} // namespace gantry::cni_bridge
