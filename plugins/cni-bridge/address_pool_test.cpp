#include "plugins/cni-bridge/address_pool.hpp"

#include <set>

#include <gtest/gtest.h>

namespace gantry::cni_bridge {
namespace {

netlink::ip_address ip(std::string_view text) { return *netlink::ip_address::parse(text); }

address_pool small(std::uint64_t seed = 0) { return {ip("10.88.0.1"), ip("10.88.0.6"), ip("10.88.0.1"), seed}; }

TEST(address_pool, hands_out_each_address_once_and_never_the_gateway) {
    auto pool = small(3);
    std::set<std::string> given;
    while (const auto address = pool.allocate()) given.insert(address->text());
    EXPECT_EQ(given, (std::set<std::string>{"10.88.0.2", "10.88.0.3", "10.88.0.4", "10.88.0.5", "10.88.0.6"}));
    EXPECT_EQ(pool.text(), "10.88.0.1-10.88.0.6: 5 addresses, 5 in use");
}

TEST(address_pool, reuses_an_address_as_late_as_possible) {
    auto pool = small();
    const auto first = *pool.allocate();
    pool.release(first);
    std::vector<std::string> order;
    for (int i = 0; i < 5; ++i) order.push_back(pool.allocate()->text());
    EXPECT_EQ(order, (std::vector<std::string>{"10.88.0.3", "10.88.0.4", "10.88.0.5", "10.88.0.6", "10.88.0.2"}));
    EXPECT_EQ(first.text(), "10.88.0.2");
}

TEST(address_pool, finds_the_last_free_address_wherever_it_is) {
    address_pool pool(ip("10.88.0.0"), ip("10.88.3.255"), ip("10.99.0.1"), 500);
    for (int i = 0; i < 1024; ++i) ASSERT_TRUE(pool.allocate());
    ASSERT_FALSE(pool.allocate());
    for (const auto* text : {"10.88.0.0", "10.88.0.63", "10.88.0.64", "10.88.1.243", "10.88.1.244", "10.88.3.255"}) {
        pool.release(ip(text));
        EXPECT_EQ(pool.allocate()->text(), text);
        EXPECT_FALSE(pool.allocate());
    }
}

TEST(address_pool, takes_only_what_is_free_and_its_own) {
    auto pool = small();
    EXPECT_TRUE(pool.take(ip("10.88.0.4")));
    for (const auto* text : {"10.88.0.4", "10.88.0.1", "10.88.0.7", "10.88.0.0", "fd00::4"})
        EXPECT_FALSE(pool.take(ip(text))) << text;
    EXPECT_EQ(pool.used(), 1u);
}

TEST(address_pool, releasing_what_is_not_taken_changes_nothing) {
    auto pool = small();
    for (const auto* text : {"10.88.0.1", "10.88.0.2", "10.99.0.1", "fd00::2"}) pool.release(ip(text));
    EXPECT_EQ(pool.used(), 0u);
    EXPECT_EQ(pool.allocate()->text(), "10.88.0.2");
    pool.release(ip("10.88.0.2"));
    pool.release(ip("10.88.0.2"));
    EXPECT_EQ(pool.used(), 0u);
}

TEST(address_pool, uses_the_first_part_of_a_range_too_large_for_any_node) {
    address_pool pool(ip("fd00::1"), ip("fd00::ffff:ffff:ffff:ffff"), ip("fd00::1"), 1u << 31);
    EXPECT_EQ(pool.capacity(), address_pool::size_limit - 1);
    for (std::uint64_t i = 0; i < pool.capacity(); ++i) ASSERT_TRUE(pool.allocate());
    EXPECT_FALSE(pool.allocate());
    EXPECT_TRUE(pool.contains(ip("fd00::1:0")));
    EXPECT_FALSE(pool.contains(ip("fd00::1:1")));
}

} // namespace
} // namespace gantry::cni_bridge
