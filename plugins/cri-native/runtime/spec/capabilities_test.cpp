#include "plugins/cri-native/runtime/spec/capabilities.hpp"

#include <linux/capability.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::cri_native {
namespace {

constexpr capability_mask every_capability = (capability_mask{1} << (CAP_LAST_CAP + 1)) - 1;
constexpr capability_mask bit(int number) { return capability_mask{1} << number; }

TEST(parse_capability, takes_both_spellings) {
    EXPECT_EQ(parse_capability("CAP_NET_ADMIN"), CAP_NET_ADMIN);
    EXPECT_EQ(parse_capability("net_admin"), CAP_NET_ADMIN);
    EXPECT_EQ(parse_capability("CHECKPOINT_RESTORE"), CAP_CHECKPOINT_RESTORE);
    EXPECT_EQ(parse_capability("CAP_CAP_CHOWN"), std::nullopt);
    EXPECT_EQ(parse_capability(""), std::nullopt);
    EXPECT_EQ(capability_name(CAP_SETFCAP), "CAP_SETFCAP");
}

TEST(parse_capability, is_strict) {
    EXPECT_EQ(parse_capability("NET_ADMIN"), 12);
    EXPECT_EQ(parse_capability("cap_sys_admin"), 21);
    for (const char* bad : {"", "CAP_", "ALL", "NET_ADMIN ", "21"})
        EXPECT_EQ(parse_capability(bad), std::nullopt) << bad;
    EXPECT_EQ(default_capabilities(), 0xa80425fbu);
}

TEST(resolve_capabilities, starts_from_the_default_set) {
    EXPECT_EQ(resolve_capabilities({.available = every_capability})->bounding, default_capabilities());
}

TEST(resolve_capabilities, adds_and_drops) {
    const auto sets =
        resolve_capabilities({.add = {"NET_ADMIN"}, .drop = {"CAP_CHOWN", "mknod"}, .available = every_capability});
    EXPECT_EQ(sets->bounding, (default_capabilities() | bit(CAP_NET_ADMIN)) & ~bit(CAP_CHOWN) & ~bit(CAP_MKNOD));
}

TEST(resolve_capabilities, knows_all) {
    EXPECT_EQ(resolve_capabilities({.add = {"ALL"}, .available = every_capability})->bounding, every_capability);
    EXPECT_EQ(resolve_capabilities({.drop = {"all"}, .available = every_capability})->bounding, 0u);
    EXPECT_EQ(
        resolve_capabilities({.add = {"NET_BIND_SERVICE"}, .drop = {"ALL"}, .available = every_capability})->bounding,
        bit(CAP_NET_BIND_SERVICE));
    EXPECT_EQ(resolve_capabilities({.add = {"ALL"}, .drop = {"SYS_ADMIN"}, .available = every_capability})->bounding,
              every_capability & ~bit(CAP_SYS_ADMIN));
}

TEST(resolve_capabilities, drops_what_is_both_added_and_dropped) {
    EXPECT_EQ(
        resolve_capabilities({.add = {"NET_ADMIN"}, .drop = {"NET_ADMIN"}, .available = every_capability})->bounding,
        default_capabilities());
}

TEST(resolve_capabilities, gives_no_more_than_the_node_has) {
    const auto without = every_capability & ~bit(CAP_SYS_RESOURCE) & ~bit(CAP_CHOWN);
    const auto sets = resolve_capabilities({.add = {"SYS_RESOURCE"}, .available = without});
    EXPECT_EQ(sets->bounding, default_capabilities() & ~bit(CAP_CHOWN));
    EXPECT_EQ(sets->missing, bit(CAP_SYS_RESOURCE));
    EXPECT_EQ(resolve_capabilities({.privileged = true, .available = without})->bounding, without);
}

TEST(resolve_capabilities, refuses_names_that_are_none) {
    const auto sets = resolve_capabilities({.add = {"NET_ADMIN", "CAP_FOO"}, .available = every_capability});
    ASSERT_FALSE(sets);
    EXPECT_THAT(sets.error().message, testing::HasSubstr("\"CAP_FOO\""));
    EXPECT_FALSE(resolve_capabilities({.drop = {"NONE"}, .available = every_capability}));
}

TEST(resolve_capabilities, makes_ambient_ones_effective_too) {
    const auto sets = resolve_capabilities({.add_ambient = {"NET_RAW", "NET_ADMIN"}, .available = every_capability});
    EXPECT_EQ(sets->ambient, bit(CAP_NET_RAW) | bit(CAP_NET_ADMIN));
    EXPECT_TRUE(sets->bounding & bit(CAP_NET_ADMIN));
}

} // namespace
} // namespace gantry::cri_native
