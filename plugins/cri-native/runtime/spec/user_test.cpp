#include "plugins/cri-native/runtime/spec/user.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::cri_native {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::string_view passwd = "root:x:0:0:root:/root:/bin/sh\n"
                                    "broken line\n"
                                    "negative:x:-1:5::/:/bin/sh\n"
                                    "app:x:1000:1001:App:/home/app:/bin/sh\n"
                                    "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin";
constexpr std::string_view group = "root:x:0:\n"
                                   "app:x:1001:\n"
                                   "audio:x:29:app,other\n"
                                   "video:x:44:other,app\n"
                                   "applications:x:50:apple\n"
                                   "nogroup:x:65534:\n";

user_request image_user(std::string user) { return {.image_user = std::move(user), .image = "example:1"}; }

TEST(parse_id, takes_digits_only) {
    EXPECT_EQ(parse_id("0"), 0u);
    EXPECT_EQ(parse_id("1000"), 1000u);
    EXPECT_EQ(parse_id("4294967294"), 4294967294u);
    for (const auto* text :
         {"", "-1", "+1", " 1", "1 ", "0x10", "1e3", "4294967295", "4294967296", "99999999999999999999", "1:", "\n1"})
        EXPECT_EQ(parse_id(text), std::nullopt) << '"' << text << '"';
}

TEST(resolve_user, takes_ids_without_any_passwd_file) {
    const auto who = resolve_user({.run_as_user = 1000, .image = "scratch"}, "", "");
    ASSERT_TRUE(who);
    EXPECT_EQ(who->uid, 1000u);
    EXPECT_EQ(who->gid, 0u);
    EXPECT_EQ(who->home, "/");
    EXPECT_THAT(who->groups, ElementsAre(0));
}

TEST(resolve_user, runs_images_without_user_as_root) {
    const auto who = resolve_user(image_user(""), passwd, group);
    ASSERT_TRUE(who);
    EXPECT_EQ(who->uid, 0u);
    EXPECT_EQ(who->home, "/root");
}

TEST(resolve_user, finds_gid_home_and_groups_of_a_listed_uid) {
    const auto who = resolve_user({.run_as_user = 1000}, passwd, group);
    ASSERT_TRUE(who);
    EXPECT_EQ(who->gid, 1001u);
    EXPECT_EQ(who->home, "/home/app");
    EXPECT_THAT(who->groups, ElementsAre(1001, 29, 44));
}

TEST(resolve_user, adds_no_groups_of_the_image_under_strict_policy) {
    const auto who = resolve_user(
        {.run_as_user = 1000, .supplemental_groups = {2000, 1001}, .merge_image_groups = false}, passwd, group);
    ASSERT_TRUE(who);
    EXPECT_THAT(who->groups, ElementsAre(1001, 2000));
}

TEST(resolve_user, prefers_the_request_over_the_image) {
    auto request = image_user("app");
    request.run_as_username = "nobody";
    EXPECT_EQ(resolve_user(request, passwd, group)->uid, 65534u);
    request.run_as_user = 7;
    request.run_as_group = 8;
    const auto who = resolve_user(request, passwd, group);
    EXPECT_EQ(who->uid, 7u);
    EXPECT_EQ(who->gid, 8u);
}

TEST(resolve_user, takes_user_and_group_of_the_image_by_name_or_number) {
    EXPECT_EQ(resolve_user(image_user("app:audio"), passwd, group)->gid, 29u);
    EXPECT_EQ(resolve_user(image_user("app:7"), passwd, group)->gid, 7u);
    const auto who = resolve_user(image_user("4000:5000"), passwd, group);
    EXPECT_EQ(who->uid, 4000u);
    EXPECT_EQ(who->gid, 5000u);
    EXPECT_EQ(who->home, "/");
}

TEST(resolve_user, refuses_malformed_users_of_images) { // CVE-2026-30892: never run as somebody else
    for (const auto* text :
         {"1000:", ":5", ":", "1000:5:6", "-1", "+1", " 1", "4294967295", "4294967296", "app:nosuch", "app:-1"}) {
        const auto who = resolve_user(image_user(text), passwd, group);
        ASSERT_FALSE(who) << text;
        EXPECT_EQ(who.error().code, code::invalid) << text;
        EXPECT_THAT(who.error().message, HasSubstr("example:1")) << text;
    }
}

TEST(resolve_user, names_user_and_image_when_passwd_has_no_entry) {
    const auto who = resolve_user(image_user("ghost"), passwd, group);
    ASSERT_FALSE(who);
    EXPECT_THAT(who.error().message, HasSubstr("\"ghost\""));
    EXPECT_THAT(who.error().message, HasSubstr("runAsUser"));
}

TEST(resolve_user, refuses_ids_out_of_range) {
    EXPECT_FALSE(resolve_user({.run_as_user = -1}, "", ""));
    EXPECT_FALSE(resolve_user({.run_as_user = 4294967295}, "", ""));
    EXPECT_FALSE(resolve_user({.run_as_user = 1, .run_as_group = -5}, "", ""));
    EXPECT_FALSE(resolve_user({.run_as_user = 1, .supplemental_groups = {4294967296}}, "", ""));
}

TEST(resolve_user, reads_the_last_line_without_newline) {
    EXPECT_EQ(resolve_user(image_user("nobody"), passwd, group)->uid, 65534u);
}

} // namespace
} // namespace gantry::cri_native
