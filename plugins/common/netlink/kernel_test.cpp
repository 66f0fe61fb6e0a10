// Against the running kernel, in a network namespace of the test's own.
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/rtnetlink.h>
#include <sched.h>

#include <cstring>
#include <thread>

#include <gtest/gtest.h>

#include "plugins/common/netlink/conntrack.hpp"
#include "plugins/common/netlink/nft.hpp"
#include "plugins/common/netlink/route.hpp"

namespace gantry::netlink {
namespace {

base::unique_fd current_netns() { return base::unique_fd(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC)); }

base::unique_fd new_netns() {
    base::unique_fd made;
    std::thread([&] {
        if (::unshare(CLONE_NEWNET) == 0) made = current_netns();
    }).join();
    return made;
}

class kernel : public testing::Test {
protected:
    void SetUp() override {
        ASSERT_EQ(::unshare(CLONE_NEWNET), 0) << "needs root";
        route_.emplace(*socket::open(NETLINK_ROUTE));
        netfilter_.emplace(*socket::open(NETLINK_NETFILTER));
    }
    socket& route() { return *route_; }
    socket& netfilter() { return *netfilter_; }

    std::optional<socket> route_;
    std::optional<socket> netfilter_;
};

TEST_F(kernel, makes_a_veth_with_its_peer_in_another_namespace) {
    const auto pod = new_netns();
    batch b;
    add_bridge(b, "br", {0x0a, 0x58, 1, 2, 3, 4}, 1400);
    ASSERT_TRUE(route().send(b));
    const auto bridge = *get_link(route(), "br");
    ASSERT_TRUE(bridge);
    EXPECT_EQ(bridge->kind, "bridge");
    EXPECT_EQ(bridge->mtu, 1400u);
    EXPECT_EQ(to_text(bridge->mac), "0a:58:01:02:03:04");

    batch pair;
    add_veth(pair, {.name = "v0",
                    .master = bridge->index,
                    .mac = {0x0a, 1},
                    .peer_name = "eth0",
                    .peer_mac = {0x0a, 2},
                    .peer_netns = pod.get(),
                    .mtu = 1400});
    change_link(pair, "v0", {.alias = "gantry:test", .no_link_local = true, .hairpin = true});
    change_link(pair, "v0", {.up = true});
    ASSERT_TRUE(route().send(pair));
    auto inside = socket::open_in(pod.get(), NETLINK_ROUTE);
    ASSERT_TRUE(inside);
    const auto outer = *get_link(route(), "v0");
    const auto inner = *get_link(*inside, "eth0");
    ASSERT_TRUE(outer && inner);
    EXPECT_EQ(outer->peer, inner->index);
    EXPECT_EQ(inner->peer, outer->index);
    EXPECT_EQ(outer->alias, "gantry:test");
    EXPECT_EQ(outer->master, bridge->index);
    EXPECT_TRUE(outer->up);
    EXPECT_FALSE(inner->up);
    EXPECT_FALSE(*get_link(route(), "eth0"));
}

TEST_F(kernel, names_the_failed_message_and_the_kernels_reason) {
    batch b;
    add_bridge(b, "br", {0x0a, 1}, 1500);
    add_bridge(b, "br", {0x0a, 1}, 1500);
    change_link(b, "none", {.up = true});
    std::vector<int> outcomes;
    const auto sent = route().send(b, outcomes);
    ASSERT_FALSE(sent);
    EXPECT_EQ(sent.error().code, code::exists);
    EXPECT_EQ(sent.error().message, "add bridge br: File exists");
    EXPECT_EQ(outcomes, (std::vector<int>{0, EEXIST, ENODEV}));

    batch bad;
    add_route(bad,
              {.destination = *ip_network::parse("10.1.0.0/16"), .gateway = *ip_address::parse("10.9.9.9"), .index = 1},
              "lo");
    const auto refused = route().send(bad);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().message.find("add route 10.1.0.0/16 by lo: "), 0u);
    EXPECT_NE(refused.error().message.find('('), std::string::npos) << refused.error().message;
}

TEST_F(kernel, reads_back_addresses_and_routes_of_both_families) {
    batch b;
    add_bridge(b, "br", {0x0a, 1}, 1500);
    ASSERT_TRUE(route().send(b));
    const auto index = (*get_link(route(), "br"))->index;
    const auto gateway = *ip_address::parse("10.7.0.1");
    batch c;
    change_link(c, index, "br", {.up = true});
    add_address(c, index, *ip_network::parse("10.7.0.5/24"), "br");
    add_address(c, index, *ip_network::parse("fd07::5/64"), "br");
    add_route(c, {.destination = *ip_network::parse("0.0.0.0/0"), .gateway = gateway, .index = index}, "br");
    ASSERT_TRUE(route().send(c));

    std::vector<std::string> texts;
    const auto addresses = *list_addresses(route());
    for (const auto& a : addresses)
        if (a.index == index) texts.push_back(a.network.text());
    EXPECT_EQ(texts, (std::vector<std::string>{"10.7.0.5/24", "fd07::5/64"}));
    bool found = false;
    const auto routes = *list_routes(route(), false);
    for (const auto& r : routes)
        found = found || (r.destination.prefix == 0 && r.gateway == gateway && r.index == index);
    EXPECT_TRUE(found);
    EXPECT_EQ(*outgoing_link(route(), *ip_address::parse("203.0.113.1")), index);
    EXPECT_EQ(*outgoing_link(route(), *ip_address::parse("2001:db8::1")), std::nullopt);
}

TEST_F(kernel, sends_hundreds_of_messages_at_once) {
    batch b;
    add_bridge(b, "br", {0x0a, 1}, 1500);
    ASSERT_TRUE(route().send(b));
    const auto index = (*get_link(route(), "br"))->index;
    batch many;
    for (int i = 0; i < 2000; ++i)
        add_address(many, index, {ip_address::parse("10.9.0.1")->plus(static_cast<std::uint64_t>(i)), 32}, "br");
    ASSERT_TRUE(route().send(many));
    EXPECT_EQ(list_addresses(route())->size(), 2000u);
}

TEST_F(kernel, refuses_a_descriptor_that_is_no_namespace) {
    const base::unique_fd null(::open("/dev/null", O_RDONLY));
    const auto opened = socket::open_in(null.get(), NETLINK_ROUTE);
    ASSERT_FALSE(opened);
    EXPECT_NE(opened.error().message.find("not a network namespace"), std::string::npos);
}

TEST_F(kernel, commits_a_ruleset_whole_or_not_at_all) {
    const nft::set_spec ports{
        .name = "ports",
        .key_type = nft::concatenation({nft::data_type::inet_proto, nft::data_type::inet_service}),
        .key_size = 8,
        .data_type = nft::concatenation({nft::data_type::ipv4_addr, nft::data_type::inet_service}),
        .data_size = 8};
    const nft::element e{{IPPROTO_TCP, 0, 0, 0, 0x1f, 0x90, 0, 0}, {10, 88, 0, 2, 0, 80, 0, 0}};
    const nft::hook at{.type = "nat", .number = NF_INET_PRE_ROUTING, .priority = -100};
    const std::uint8_t v4[] = {NFPROTO_IPV4};
    std::string identity;
    const auto build = [&](batch& b) {
        nft::add_table(b, "t");
        nft::add_set(b, "t", ports, 1);
        nft::add_chain(b, "t", "pre", at);
        nft::rule r(b, "t", "pre");
        r.meta(NFT_META_NFPROTO, nft::word(0)).equal(nft::word(0), v4);
        r.meta(NFT_META_L4PROTO, nft::word(0)).payload(NFT_PAYLOAD_TRANSPORT_HEADER, 2, 2, nft::word(1));
        r.lookup("ports", nft::word(0), nft::word(0)).dnat(NFPROTO_IPV4, nft::word(0), nft::word(1));
        identity = r.finish();
        nft::add_elements(b, "t", "ports", {&e, 1});
    };
    batch bad;
    nft::start(bad);
    build(bad);
    nft::add_elements(bad, "t", "nowhere", {&e, 1});
    nft::finish(bad);
    const auto refused = netfilter().commit(bad);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, code::not_found);
    EXPECT_EQ(refused.error().message.find("add elements to set nowhere of nftables table t: "), 0u)
        << refused.error().message;
    EXPECT_FALSE(*nft::has_table(netfilter(), "t"));

    batch good;
    nft::start(good);
    build(good);
    nft::finish(good);
    const auto done = netfilter().commit(good);
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_TRUE(*nft::has_table(netfilter(), "t"));
    EXPECT_EQ(*nft::list_chains(netfilter(), "t"), (std::vector<nft::listed_chain>{{"pre", at}}));
    EXPECT_EQ(*nft::list_rules(netfilter(), "t"), (std::vector<nft::listed_rule>{{"pre", identity}}));
    EXPECT_EQ(*nft::list_sets(netfilter(), "t"), std::vector<std::string>{"ports"});
    EXPECT_EQ(*nft::list_elements(netfilter(), "t", "ports"), std::vector<nft::element>{e});

    batch gone;
    nft::start(gone);
    nft::delete_table(gone, "t");
    nft::finish(gone);
    ASSERT_TRUE(netfilter().commit(gone));
    EXPECT_FALSE(*nft::has_table(netfilter(), "t"));
    EXPECT_TRUE(nft::list_elements(netfilter(), "t", "ports")->empty());
}

TEST_F(kernel, forgets_only_the_doomed_flows) {
    batch b;
    change_link(b, 1, "lo", {.up = true});
    ASSERT_TRUE(route().send(b));
    // Tracking starts with the first rule that asks for it.
    batch track;
    nft::start(track);
    nft::add_table(track, "t");
    nft::add_chain(track, "t", "out", nft::hook{.type = "filter", .number = NF_INET_LOCAL_OUT, .priority = 0});
    nft::rule r(track, "t", "out");
    r.conntrack(NFT_CT_STATUS, nft::word(0)).finish();
    nft::finish(track);
    ASSERT_TRUE(netfilter().commit(track));

    const base::unique_fd udp(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    for (const auto* to : {"127.0.0.2", "127.0.0.3"}) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_port = htons(5353);
        address.sin_addr.s_addr = ::inet_addr(to);
        ASSERT_EQ(::sendto(udp.get(), "x", 1, 0, reinterpret_cast<sockaddr*>(&address), sizeof address), 1);
    }
    const auto to_two = [](const flow& f) { return f.destination.text() == "127.0.0.2"; };
    const auto all = [](const flow&) { return true; };
    EXPECT_EQ(*forget_flows(netfilter(), false, IPPROTO_UDP, 53, all), 0u);
    EXPECT_EQ(*forget_flows(netfilter(), false, IPPROTO_TCP, 5353, all), 0u);
    EXPECT_EQ(*forget_flows(netfilter(), false, IPPROTO_UDP, 5353, to_two), 1u);
    EXPECT_EQ(*forget_flows(netfilter(), false, IPPROTO_UDP, 5353, to_two), 0u);
    EXPECT_EQ(*forget_flows(netfilter(), false, IPPROTO_UDP, 5353, all), 1u);
}

TEST_F(kernel, hears_of_changes_by_others_only) {
    auto listener = *socket::open(NETLINK_NETFILTER);
    ASSERT_TRUE(listener.join(NFNLGRP_NFTABLES));
    const auto change = [](socket& by) {
        batch b;
        nft::start(b);
        nft::add_table(b, "t");
        nft::add_chain(b, "t", "c");
        nft::finish(b);
        ASSERT_TRUE(by.commit(b));
    };
    int heard = 0;
    const auto count = [&](const nlmsghdr&) { ++heard; };
    change(netfilter());
    ASSERT_TRUE(listener.drain(count, netfilter().port()));
    EXPECT_EQ(heard, 0);
    auto other = *socket::open(NETLINK_NETFILTER);
    change(other);
    ASSERT_TRUE(listener.drain(count, netfilter().port()));
    EXPECT_GT(heard, 0);
}

} // namespace
} // namespace gantry::netlink
