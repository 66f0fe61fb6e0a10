// Real packets between pods, the host and a machine outside.
#include "plugins/cni-bridge/sysctl.hpp"
#include "tests/cni-bridge/world.hpp"

namespace gantry::cni_bridge::test {
namespace {

class traffic : public world {
protected:
    /// A TCP connection from `from` to address:port reaches `listener` and carries bytes both ways. `seen` gets the
    /// client's address as the server sees it.
    static void expect_tcp(const netns& from, const std::string& address, std::uint16_t port, const peer& listener,
                           std::string* seen = nullptr) {
        SCOPED_TRACE(address + " port " + std::to_string(port));
        auto client = peer::tcp_connection(from, address, port);
        ASSERT_TRUE(client.connected());
        std::string source;
        auto server = listener.accept(source);
        ASSERT_TRUE(server.connected());
        client.send("ping");
        EXPECT_EQ(server.receive(), "ping");
        server.send("pong");
        EXPECT_EQ(client.receive(), "pong");
        if (seen) *seen = source;
    }
    static void expect_udp(const netns& from, const std::string& address, std::uint16_t port, peer& server,
                           std::string* seen = nullptr) {
        SCOPED_TRACE(address + " udp port " + std::to_string(port));
        const bool v6 = address.find(':') != std::string::npos;
        auto client = peer::udp(from, v6 ? "::" : "0.0.0.0", 0);
        client.send_to("ping", address, port);
        std::string source;
        ASSERT_EQ(server.receive(&source), "ping");
        server.answer("pong");
        EXPECT_EQ(client.receive(&source), "pong");
        EXPECT_EQ(source, address); // answers come from where the question went
        if (seen) *seen = source;
    }
};

TEST_F(traffic, pods_reach_each_other_with_their_own_addresses) {
    const auto net = make();
    const netns a, b;
    const auto pod_a = add(*net, "a", a);
    const auto pod_b = add(*net, "b", b);
    std::string seen;
    expect_tcp(a, v4_of(pod_b), 80, peer::tcp_listener(b, "0.0.0.0", 80), &seen);
    EXPECT_EQ(seen, v4_of(pod_a));
    expect_tcp(b, v6_of(pod_a), 80, peer::tcp_listener(a, "::", 80), &seen);
    EXPECT_EQ(seen, v6_of(pod_b));
    auto server4 = peer::udp(b, "0.0.0.0", 53);
    expect_udp(a, v4_of(pod_b), 53, server4);
    auto server6 = peer::udp(b, "::", 53);
    expect_udp(a, v6_of(pod_b), 53, server6);
}

TEST_F(traffic, pods_have_a_loopback) {
    const auto net = make();
    const netns a;
    add(*net, "a", a);
    expect_tcp(a, "127.0.0.1", 80, peer::tcp_listener(a, "127.0.0.1", 80));
    expect_tcp(a, "::1", 80, peer::tcp_listener(a, "::1", 80));
}

TEST_F(traffic, host_and_pod_reach_each_other) {
    const auto net = make();
    const netns a;
    const auto pod = add(*net, "a", a);
    expect_tcp(*host, v4_of(pod), 80, peer::tcp_listener(a, "0.0.0.0", 80));
    expect_tcp(*host, v6_of(pod), 80, peer::tcp_listener(a, "::", 80));
    std::string seen;
    expect_tcp(a, "10.77.0.1", 81, peer::tcp_listener(*host, "0.0.0.0", 81), &seen);
    EXPECT_EQ(seen, v4_of(pod));
    expect_tcp(a, "192.0.2.1", 82, peer::tcp_listener(*host, "0.0.0.0", 82), &seen);
    EXPECT_EQ(seen, v4_of(pod));
}

TEST_F(traffic, outside_sees_the_host_for_a_pod) {
    const auto net = make();
    const netns a;
    add(*net, "a", a);
    std::string seen;
    expect_tcp(a, "192.0.2.9", 80, peer::tcp_listener(*outside, "0.0.0.0", 80), &seen);
    EXPECT_EQ(seen, "192.0.2.1");
    expect_tcp(a, "2001:db8::9", 80, peer::tcp_listener(*outside, "::", 80), &seen);
    EXPECT_EQ(seen, "2001:db8::1");
}

TEST_F(traffic, outside_sees_the_pod_itself_where_masquerading_is_off) {
    const auto net =
        make(R"({"subnet": "10.77.0.0/24", "subnet6": "fd77::/64", "nonMasqueradeCIDRs": ["192.0.2.0/24"]})");
    const netns a;
    const auto pod = add(*net, "a", a);
    auto there = outside->route();
    netlink::batch b;
    const auto index = (*netlink::get_link(there, "down0"))->index;
    netlink::add_route(b,
                       {.destination = *netlink::ip_network::parse("10.77.0.0/24"),
                        .gateway = *netlink::ip_address::parse("192.0.2.1"),
                        .index = index},
                       "down0");
    ASSERT_TRUE(there.send(b));
    std::string seen;
    expect_tcp(a, "192.0.2.9", 80, peer::tcp_listener(*outside, "0.0.0.0", 80), &seen);
    EXPECT_EQ(seen, v4_of(pod));
    expect_tcp(a, "2001:db8::9", 80, peer::tcp_listener(*outside, "::", 80), &seen);
    EXPECT_EQ(seen, "2001:db8::1");
}

TEST_F(traffic, host_port_answers_on_every_address_from_everywhere) {
    const auto net = make();
    const netns a, b;
    const auto pod_a = add(*net, "a", a, {tcp(8080, 80), udp(5300, 53)});
    const auto pod_b = add(*net, "b", b);
    const auto listener = peer::tcp_listener(a, "0.0.0.0", 80);
    std::string seen;
    expect_tcp(*outside, "192.0.2.1", 8080, listener, &seen);
    EXPECT_EQ(seen, "192.0.2.9");
    expect_tcp(*host, "192.0.2.1", 8080, listener, &seen);
    EXPECT_EQ(seen, "192.0.2.1");
    expect_tcp(*host, "127.0.0.1", 8080, listener, &seen);
    EXPECT_EQ(seen, "10.77.0.1");
    expect_tcp(*host, "10.77.0.1", 8080, listener);
    expect_tcp(b, "192.0.2.1", 8080, listener, &seen);
    EXPECT_EQ(seen, v4_of(pod_b));
    expect_tcp(a, "192.0.2.1", 8080, listener, &seen); // its own
    EXPECT_EQ(seen, "10.77.0.1");

    const auto listener6 = peer::tcp_listener(a, "::", 80);
    expect_tcp(*outside, "2001:db8::1", 8080, listener6, &seen);
    EXPECT_EQ(seen, "2001:db8::9");
    expect_tcp(*host, "2001:db8::1", 8080, listener6);
    expect_tcp(b, "2001:db8::1", 8080, listener6, &seen);
    EXPECT_EQ(seen, v6_of(pod_b));
    expect_tcp(a, "2001:db8::1", 8080, listener6);

    auto server = peer::udp(a, "0.0.0.0", 53);
    expect_udp(*outside, "192.0.2.1", 5300, server);
    expect_udp(*host, "127.0.0.1", 5300, server);
    expect_udp(b, "192.0.2.1", 5300, server);
    expect_udp(a, "192.0.2.1", 5300, server);
    auto server6 = peer::udp(a, "::", 53);
    expect_udp(*outside, "2001:db8::1", 5300, server6);
}

TEST_F(traffic, host_ports_work_with_and_without_bridge_netfilter) {
    const auto net = make();
    const netns a, b;
    add(*net, "a", a, {tcp(8080, 80)});
    add(*net, "b", b);
    const auto listener = peer::tcp_listener(a, "0.0.0.0", 80);
    for (const auto* value : {"0", "1"}) {
        SCOPED_TRACE(std::string("bridge-nf-call-iptables ") + value);
        if (!set_sysctl("net/bridge/bridge-nf-call-iptables", value)) continue; // no br_netfilter on this kernel
        expect_tcp(b, "192.0.2.1", 8080, listener);
        expect_tcp(a, "192.0.2.1", 8080, listener);
    }
}

TEST_F(traffic, host_ip_limits_a_host_port_to_that_address) {
    const auto net = make();
    const netns a, b;
    add(*net, "a", a, {tcp(8080, 80, "127.0.0.1")});
    add(*net, "b", b, {tcp(8080, 80, "192.0.2.1"), tcp(8080, 80, "2001:db8::1")});
    const auto in_a = peer::tcp_listener(a, "0.0.0.0", 80);
    const auto in_b = peer::tcp_listener(b, "0.0.0.0", 80);
    const auto in_b6 = peer::tcp_listener(b, "::", 80);
    expect_tcp(*host, "127.0.0.1", 8080, in_a);
    expect_tcp(*host, "192.0.2.1", 8080, in_b);
    expect_tcp(*outside, "192.0.2.1", 8080, in_b);
    expect_tcp(*outside, "2001:db8::1", 8080, in_b6);
    EXPECT_FALSE(peer::tcp_connection(*host, "10.77.0.1", 8080).connected());
}

TEST_F(traffic, pods_cannot_reach_the_loopback_of_the_host) {
    const auto net = make();
    const netns a;
    add(*net, "a", a);
    const auto secret = peer::tcp_listener(*host, "127.0.0.1", 9999);
    expect_tcp(*host, "127.0.0.1", 9999, secret);
    // The attack of CVE-2020-8558: a pod routes 127.0.0.0/8 to its gateway.
    auto pod = a.route();
    netlink::batch b;
    const auto eth0 = *netlink::get_link(pod, "eth0");
    netlink::delete_address(b, 1, *netlink::ip_network::parse("127.0.0.1/8"), "lo");
    netlink::add_route(b,
                       {.destination = *netlink::ip_network::parse("127.0.0.1/32"),
                        .gateway = *netlink::ip_address::parse("10.77.0.1"),
                        .index = eth0->index},
                       "eth0");
    ASSERT_TRUE(pod.send(b));
    a.run([] { ASSERT_TRUE(set_sysctl("net/ipv4/conf/eth0/route_localnet", "1")); });
    EXPECT_FALSE(peer::tcp_connection(a, "127.0.0.1", 9999, std::chrono::milliseconds(500)).connected());
}

TEST_F(traffic, deleted_pod_is_cut_off_at_once_though_its_namespace_stays) {
    const auto net = make();
    const netns a;
    const auto pod = add(*net, "a", a);
    const auto listener = peer::tcp_listener(a, "0.0.0.0", 80);
    expect_tcp(*host, v4_of(pod), 80, listener);
    ASSERT_TRUE(net->del({"a", "eth0"}, no_steps));
    EXPECT_FALSE(peer::tcp_connection(*host, v4_of(pod), 80, std::chrono::milliseconds(300)).connected());
}

TEST_F(traffic, udp_client_that_never_stops_follows_its_host_port_to_the_next_pod) {
    const auto net = make();
    auto client = peer::udp(*outside, "0.0.0.0", 7000);
    const auto sent_until = [&](peer& server) {
        return eventually([&] {
            client.send_to("x", "192.0.2.1", 5300);
            return !server.receive(nullptr, std::chrono::milliseconds(20)).empty();
        });
    };
    // Sends while nobody holds the port, so that a flow without translation exists.
    (void)add(*net, "zero", netns());
    client.send_to("x", "192.0.2.1", 5300);
    const netns a;
    add(*net, "a", a, {udp(5300, 53)});
    auto in_a = peer::udp(a, "0.0.0.0", 53);
    client.send_to("first", "192.0.2.1", 5300);
    EXPECT_EQ(in_a.receive(), "first");

    ASSERT_TRUE(net->del({"a", "eth0"}, no_steps));
    const netns b;
    add(*net, "b", b, {udp(5300, 53)});
    auto in_b = peer::udp(b, "0.0.0.0", 53);
    client.send_to("second", "192.0.2.1", 5300);
    EXPECT_EQ(in_b.receive(), "second");
    EXPECT_TRUE(sent_until(in_b));
}

TEST_F(traffic, udp_flows_of_others_survive_a_new_host_port) {
    const auto net = make();
    const netns a, b;
    add(*net, "a", a);
    // A flow to a server outside that happens to have the same port.
    auto client = peer::udp(a, "0.0.0.0", 7000);
    auto server = peer::udp(*outside, "0.0.0.0", 5300);
    client.send_to("one", "192.0.2.9", 5300);
    ASSERT_EQ(server.receive(), "one");
    add(*net, "b", b, {udp(5300, 53)});
    server.answer("two"); // only a flow that is still known brings this back to the pod
    EXPECT_EQ(client.receive(), "two");
}

TEST_F(traffic, isolated_instances_do_not_reach_each_other) {
    const auto first = make(R"({"subnet": "10.77.0.0/24", "isolate": true})", instance + "a");
    const auto second = make(R"({"subnet": "10.78.0.0/24"})", instance + "b");
    const netns a, b, c;
    const auto pod_a = add(*first, "a", a);
    const auto pod_b = add(*second, "b", b);
    const auto pod_c = add(*first, "c", c);
    const auto in_b = peer::tcp_listener(b, "0.0.0.0", 80);
    const auto in_c = peer::tcp_listener(c, "0.0.0.0", 80);
    EXPECT_FALSE(peer::tcp_connection(a, v4_of(pod_b), 80, std::chrono::milliseconds(300)).connected());
    EXPECT_FALSE(peer::tcp_connection(b, v4_of(pod_a), 80, std::chrono::milliseconds(300)).connected());
    expect_tcp(a, v4_of(pod_c), 80, in_c);
    expect_tcp(*host, v4_of(pod_c), 80, in_c);
    expect_tcp(a, "192.0.2.9", 80, peer::tcp_listener(*outside, "0.0.0.0", 80));
}

TEST_F(traffic, two_instances_with_their_own_subnets_live_side_by_side) {
    const auto first = make(R"({"subnet": "10.77.0.0/24"})", instance + "a");
    const auto second = make(R"({"subnet": "10.78.0.0/24"})", instance + "b");
    const netns a, b;
    add(*first, "a", a, {tcp(8080, 80)});
    const auto pod_b = add(*second, "b", b, {tcp(8081, 80)});
    const auto in_a = peer::tcp_listener(a, "0.0.0.0", 80);
    const auto in_b = peer::tcp_listener(b, "0.0.0.0", 80);
    expect_tcp(*outside, "192.0.2.1", 8080, in_a);
    expect_tcp(*outside, "192.0.2.1", 8081, in_b);
    expect_tcp(a, v4_of(pod_b), 80, in_b);
    expect_tcp(b, "192.0.2.1", 8080, in_a);
}

} // namespace
} // namespace gantry::cni_bridge::test
