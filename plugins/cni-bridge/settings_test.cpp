#include "plugins/cni-bridge/settings.hpp"

#include <gtest/gtest.h>

namespace gantry::cni_bridge {
namespace {

std::string fault_of_settings(std::string_view config) {
    const auto parsed = parse_settings(config);
    return parsed ? "accepted" : parsed.error().message;
}

TEST(settings, derive_gateway_and_range_from_the_subnet) {
    const auto s = parse_settings("{}");
    ASSERT_TRUE(s);
    EXPECT_EQ(s->v4->subnet.text(), "10.88.0.0/16");
    EXPECT_EQ(s->v4->gateway.text(), "10.88.0.1");
    EXPECT_EQ(s->v4->first.text(), "10.88.0.1");
    EXPECT_EQ(s->v4->last.text(), "10.88.255.254");
    EXPECT_FALSE(s->v6);
    EXPECT_TRUE(s->masquerade);
    EXPECT_FALSE(s->isolate);
}

TEST(settings, take_what_is_given) {
    const auto s =
        parse_settings(R"({"subnet": "", "subnet6": "fd00::/64", "gateway6": "fd00::ff", "rangeStart6": "fd00::100",
        "rangeEnd6": "fd00::1ff", "mtu": 1400, "masquerade": false, "nonMasqueradeCIDRs": ["10.1.2.3/8"], "isolate": true})");
    ASSERT_TRUE(s) << s.error().message;
    EXPECT_FALSE(s->v4);
    EXPECT_EQ(s->v6->gateway.text(), "fd00::ff");
    EXPECT_EQ(s->v6->first.text(), "fd00::100");
    EXPECT_EQ(s->v6->last.text(), "fd00::1ff");
    EXPECT_EQ(s->mtu, 1400u);
    EXPECT_FALSE(s->masquerade);
    EXPECT_EQ(s->not_masqueraded.at(0).text(), "10.0.0.0/8");
    EXPECT_TRUE(s->isolate);
}

TEST(settings, faults_name_the_key_and_the_value) {
    EXPECT_EQ(fault_of_settings(R"({"subnet": "10.88.0.5/16"})"),
              "cni-bridge config: subnet: 10.88.0.5/16 has bits beyond its prefix; write 10.88.0.0/16");
    EXPECT_EQ(fault_of_settings(R"({"subnet": "fd00::/64"})"), "cni-bridge config: subnet: fd00::/64 is not an IPv4 network");
    EXPECT_EQ(fault_of_settings(R"({"subnet6": "10.0.0.0/8"})"), "cni-bridge config: subnet6: 10.0.0.0/8 is not an IPv6 network");
    EXPECT_EQ(fault_of_settings(R"({"subnet": ""})"),
              "cni-bridge config: subnet: set subnet, subnet6 or both: pods need an address");
    EXPECT_EQ(
        fault_of_settings(R"({"subnet": "10.88.0.0/31"})"),
        "cni-bridge config: subnet: 10.88.0.0/31 is too small for a gateway and a pod; the longest prefix is /30");
    EXPECT_EQ(fault_of_settings(R"({"gateway": "10.89.0.1"})"),
              "cni-bridge config: gateway: 10.89.0.1 is not in subnet 10.88.0.0/16");
    EXPECT_EQ(fault_of_settings(R"({"gateway": "10.88.255.255"})"),
              "cni-bridge config: gateway: 10.88.255.255 is the network or broadcast address of 10.88.0.0/16");
    EXPECT_EQ(fault_of_settings(R"({"rangeStart": "10.88.0.9", "rangeEnd": "10.88.0.8"})"),
              "cni-bridge config: rangeStart: the range 10.88.0.9-10.88.0.8 must rise and lie within "
              "10.88.0.1-10.88.255.254");
    EXPECT_EQ(fault_of_settings(R"({"rangeStart": "10.88.0.1", "rangeEnd": "10.88.0.1"})"),
              "cni-bridge config: rangeStart: the range holds only the gateway 10.88.0.1");
    EXPECT_EQ(fault_of_settings(R"({"mtu": 500})"), "cni-bridge config: mtu: 500 is below the minimum of 576 for IPv4");
    EXPECT_EQ(fault_of_settings(R"({"mtu": 1200, "subnet6": "fd00::/64"})"),
              "cni-bridge config: mtu: 1200 is below the minimum of 1280 for IPv6");
    EXPECT_NE(fault_of_settings(R"({"nonMasqueradeCIDRs": ["x"]})").find("nonMasqueradeCIDRs: \"x\" is not a network"),
              std::string::npos);
    EXPECT_NE(fault_of_settings("{\"subnet\": 5}").find("wrong type"), std::string::npos);
    EXPECT_NE(fault_of_settings("[").find("cni-bridge config"), std::string::npos);
}

} // namespace
} // namespace gantry::cni_bridge
