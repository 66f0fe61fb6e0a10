#include "plugins/common/netlink/message.hpp"

#include <linux/rtnetlink.h>

#include <gtest/gtest.h>

namespace gantry::netlink {
namespace {

TEST(batch, lengths_of_messages_and_nests_cover_what_they_hold) {
    batch b;
    b.begin(RTM_NEWLINK, NLM_F_REQUEST, ifinfomsg{}, "first");
    b.put_text(IFLA_IFNAME, "eth0");
    {
        const auto info = b.open(IFLA_LINKINFO);
        b.put_text(IFLA_INFO_KIND, "veth");
        const auto data = b.open(IFLA_INFO_DATA);
        b.put_u8(7, 1);
    }
    b.begin(RTM_GETLINK, NLM_F_REQUEST, ifinfomsg{}, "second");

    ASSERT_EQ(b.count(), 2u);
    EXPECT_EQ(b.label(1), "second");
    EXPECT_EQ(b.message(0).nlmsg_len + b.message(1).nlmsg_len, b.bytes());
    EXPECT_EQ(b.message(1).nlmsg_len, NLMSG_LENGTH(sizeof(ifinfomsg)));
    const attributes all(b.message(0), sizeof(ifinfomsg));
    EXPECT_EQ(all.find(IFLA_IFNAME)->text(), "eth0");
    const auto info = all.find(IFLA_LINKINFO)->nested();
    EXPECT_EQ(info.find(IFLA_INFO_KIND)->text(), "veth");
    EXPECT_EQ(info.find(IFLA_INFO_DATA)->nested().find(7)->u8(), 1);
    EXPECT_FALSE(all.find(IFLA_MTU));
}

TEST(attributes, stop_at_a_length_that_leaves_the_message) {
    batch b;
    b.begin(RTM_NEWLINK, 0, ifinfomsg{}, "x");
    b.put_u32(1, 10);
    b.put_u32(2, 20);
    auto& second =
        *reinterpret_cast<nlattr*>(reinterpret_cast<char*>(&b.message(0)) + NLMSG_LENGTH(sizeof(ifinfomsg)) + 8);
    for (const std::uint16_t length : {std::uint16_t{3}, std::uint16_t{0}, std::uint16_t{9}, std::uint16_t{65535}}) {
        second.nla_len = length;
        std::size_t seen = 0;
        for (const auto& a : attributes(b.message(0), sizeof(ifinfomsg))) {
            EXPECT_EQ(a.u32(), 10u);
            ++seen;
        }
        EXPECT_EQ(seen, 1u) << length;
    }
}

TEST(attributes, numbers_shorter_than_their_type_read_as_zero) {
    batch b;
    b.begin(RTM_NEWLINK, 0, ifinfomsg{}, "x");
    b.put_u8(1, 255);
    EXPECT_EQ(attributes(b.message(0), sizeof(ifinfomsg)).find(1)->u32(), 0u);
}

TEST(header_of, is_null_for_a_message_that_is_too_short) {
    batch b;
    b.begin(NLMSG_NOOP, 0, std::uint32_t{0}, "x");
    EXPECT_NE(header_of<std::uint32_t>(b.message(0)), nullptr);
    EXPECT_EQ(header_of<ifinfomsg>(b.message(0)), nullptr);
}

} // namespace
} // namespace gantry::netlink
