#include "plugins/cni-bridge/ports.hpp"

#include <netinet/in.h>

#include <gtest/gtest.h>

namespace gantry::cni_bridge {
namespace {

port_mapping tcp(std::uint16_t port, std::string_view host_ip = "") {
    port_mapping m{.protocol = IPPROTO_TCP, .host_port = port, .container_port = 80};
    if (!host_ip.empty()) m.host_ip = *netlink::ip_address::parse(host_ip);
    return m;
}

TEST(host_ports, clash_where_their_addresses_meet) {
    EXPECT_TRUE(clash(tcp(80), tcp(80)));
    EXPECT_TRUE(clash(tcp(80), tcp(80, "10.0.0.1")));
    EXPECT_TRUE(clash(tcp(80, "0.0.0.0"), tcp(80, "10.0.0.1")));
    EXPECT_TRUE(clash(tcp(80, "::"), tcp(80, "fd00::1")));
    EXPECT_TRUE(clash(tcp(80, "10.0.0.1"), tcp(80, "10.0.0.1")));
    EXPECT_FALSE(clash(tcp(80, "10.0.0.1"), tcp(80, "10.0.0.2")));
    EXPECT_FALSE(clash(tcp(80, "0.0.0.0"), tcp(80, "::")));
    EXPECT_FALSE(clash(tcp(80, "::"), tcp(80, "10.0.0.1")));
    EXPECT_FALSE(clash(tcp(80), tcp(81)));
    auto udp = tcp(80);
    udp.protocol = IPPROTO_UDP;
    EXPECT_FALSE(clash(tcp(80), udp));
}

TEST(host_ports, are_free_again_once_their_holder_is_gone) {
    const lease holder{.container_id = "a", .ifname = "eth0", .pod = "default/web", .ports = {tcp(80), tcp(81)}};
    const lease_table leases{{holder.key(), holder}};
    port_table table;
    table.add(holder);
    const attachment other{"b", "eth0"};
    const auto taken = table.check(other, {tcp(79), tcp(81, "10.0.0.1")}, leases);
    ASSERT_FALSE(taken);
    EXPECT_EQ(taken.error().message,
              "hostPort tcp 10.0.0.1:81 is taken by pod default/web (container a), which maps tcp 81; "
              "give one of them another hostPort or hostIP");
    EXPECT_TRUE(table.check(holder.key(), {tcp(80)}, leases));
    table.remove(holder);
    EXPECT_TRUE(table.check(other, {tcp(80), tcp(81)}, leases));
}

TEST(host_ports, clash_within_one_pod_is_an_error_too) {
    const auto twice = port_table().check({"a", "eth0"}, {tcp(80), tcp(80, "10.0.0.1")}, {});
    ASSERT_FALSE(twice);
    EXPECT_EQ(twice.error().message, "hostPort tcp 10.0.0.1:80 is mapped twice by this pod");
}

} // namespace
} // namespace gantry::cni_bridge
