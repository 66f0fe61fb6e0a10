#include "plugins/common/netlink/ip.hpp"

#include <limits>

#include <gtest/gtest.h>

namespace gantry::netlink {
namespace {

ip_address ip(std::string_view text) { return *ip_address::parse(text); }
ip_network net(std::string_view text) { return *ip_network::parse(text); }

TEST(ip_address, reads_and_writes_both_families) {
    for (const auto* text : {"10.88.0.1", "0.0.0.0", "fd00::1", "::", "fe80::858:aff:fe58:2"})
        EXPECT_EQ(ip(text).text(), text);
    for (const auto* text : {"", "10.88.0", "10.88.0.256", "10.88.0.1 ", "fd00:::1", "host"}) {
        const auto parsed = ip_address::parse(text);
        ASSERT_FALSE(parsed) << text;
        EXPECT_EQ(parsed.error().code, code::invalid);
    }
    EXPECT_FALSE(ip_address::parse(std::string_view("10.0.0.1\0x", 10)));
}

TEST(ip_address, counts_across_byte_borders) {
    EXPECT_EQ(ip("10.88.0.255").plus(1).text(), "10.88.1.0");
    EXPECT_EQ(ip("10.88.255.255").plus(257).text(), "10.89.1.0");
    EXPECT_EQ(ip("255.255.255.255").plus(1).text(), "0.0.0.0");
    EXPECT_EQ(ip("fd00::ffff").plus(1).text(), "fd00::1:0");
    EXPECT_EQ(ip("10.88.0.2").distance_to(ip("10.88.2.0")), 510u);
    EXPECT_EQ(ip("10.88.0.2").distance_to(ip("10.88.0.1")), std::numeric_limits<std::uint64_t>::max());
    EXPECT_EQ(ip("fd00::").distance_to(ip("fd01::")), std::numeric_limits<std::uint64_t>::max());
    EXPECT_EQ(ip("fd00::").distance_to(ip("fd00::1:0")), 65536u);
}

TEST(ip_address, knows_loopback) {
    EXPECT_TRUE(ip("127.0.0.53").is_loopback());
    EXPECT_TRUE(ip("::1").is_loopback());
    EXPECT_FALSE(ip("10.0.0.1").is_loopback());
    EXPECT_FALSE(ip("::").is_loopback());
}

TEST(ip_network, spans_first_to_last_address) {
    EXPECT_EQ(net("10.88.7.9/20").base().text(), "10.88.0.0");
    EXPECT_EQ(net("10.88.7.9/20").last().text(), "10.88.15.255");
    EXPECT_EQ(net("fd00::5/64").base().text(), "fd00::");
    EXPECT_EQ(net("fd00::5/126").last().text(), "fd00::7");
    EXPECT_TRUE(net("10.88.0.0/16").contains(ip("10.88.255.255")));
    EXPECT_FALSE(net("10.88.0.0/16").contains(ip("10.89.0.0")));
    EXPECT_FALSE(net("0.0.0.0/0").contains(ip("fd00::1")));
}

TEST(ip_network, overlaps_when_one_holds_the_other) {
    EXPECT_TRUE(net("10.88.0.0/16").overlaps(net("10.88.3.0/24")));
    EXPECT_TRUE(net("10.88.3.0/24").overlaps(net("10.88.0.0/16")));
    EXPECT_FALSE(net("10.88.0.0/17").overlaps(net("10.88.128.0/17")));
}

TEST(ip_network, refuses_what_is_not_a_network) {
    for (const auto* text :
         {"10.88.0.0", "10.88.0.0/33", "10.88.0.0/", "10.88.0.0/-1", "10.88.0.0/8x", "/8", "fd00::/129"})
        EXPECT_FALSE(ip_network::parse(text)) << text;
}

} // namespace
} // namespace gantry::netlink
