#include "plugins/cri-native/images/reference.hpp"

#include <gtest/gtest.h>

namespace gantry::images {
namespace {

const std::string digest = "sha256:" + std::string(64, 'a');

std::string canonical(std::string_view text) {
    auto ref = parse_reference(text);
    return ref ? ref->canonical() : "error: " + ref.error().message;
}

TEST(image_reference, fills_in_registry_library_and_latest) {
    EXPECT_EQ(canonical("busybox"), "docker.io/library/busybox:latest");
    EXPECT_EQ(canonical("busybox:1.36"), "docker.io/library/busybox:1.36");
    EXPECT_EQ(canonical("team/app"), "docker.io/team/app:latest");
    EXPECT_EQ(canonical("docker.io/busybox"), "docker.io/library/busybox:latest");
    EXPECT_EQ(canonical("index.docker.io/busybox"), "docker.io/library/busybox:latest");
}

TEST(image_reference, knows_a_registry_by_dot_port_localhost_or_upper_case) {
    EXPECT_EQ(canonical("localhost/app"), "localhost/app:latest");
    EXPECT_EQ(canonical("localhost:5000/app:v1"), "localhost:5000/app:v1");
    EXPECT_EQ(canonical("registry.example.com/a/b/c:v1"), "registry.example.com/a/b/c:v1");
    EXPECT_EQ(canonical("[::1]:5000/app"), "[::1]:5000/app:latest");
    EXPECT_EQ(canonical("Host/app"), "Host/app:latest");
}

TEST(image_reference, digest_wins_over_tag) {
    const auto ref = parse_reference("busybox:1.36@" + digest);
    ASSERT_TRUE(ref);
    EXPECT_EQ(ref->tag, "1.36");
    EXPECT_EQ(ref->canonical(), "docker.io/library/busybox@" + digest);
    EXPECT_EQ(canonical("busybox@" + digest), "docker.io/library/busybox@" + digest);
}

TEST(image_reference, refuses_what_no_registry_can_hold) {
    for (const std::string text : {"",
                                   ":",
                                   "/",
                                   "Busybox",
                                   "busybox:",
                                   "busybox:-x",
                                   "busybox:.x",
                                   "a//b",
                                   "a/",
                                   "/a",
                                   "a..b",
                                   "a___b",
                                   "a_-b",
                                   "-a",
                                   "a-",
                                   "busybox@sha256:abc",
                                   "busybox@md5:d41d8cd98f00b204e9800998ecf8427e",
                                   "host:port/app",
                                   "host.com:123456/app",
                                   "bad_host.com/app",
                                   "app name",
                                   "app\n",
                                   "../etc",
                                   "a/../b",
                                   "[::1/app",
                                   "http://host/app"}) {
        const auto ref = parse_reference(text);
        ASSERT_FALSE(ref) << text << " became " << ref->canonical();
        EXPECT_EQ(ref.error().code, code::invalid);
        EXPECT_EQ(ref.error().detail, R"({"reason":"InvalidImageName"})");
        EXPECT_NE(ref.error().message.find("\"" + text + "\""), std::string::npos) << ref.error().message;
    }
}

TEST(image_reference, refuses_an_image_id_as_name) { EXPECT_FALSE(parse_reference(std::string(64, 'a'))); }

TEST(image_reference, bounds_name_and_tag) {
    EXPECT_TRUE(parse_reference("h.io/" + std::string(250, 'a')));
    EXPECT_FALSE(parse_reference("h.io/" + std::string(251, 'a')));
    EXPECT_TRUE(parse_reference("a:" + std::string(128, 't')));
    EXPECT_FALSE(parse_reference("a:" + std::string(129, 't')));
}

TEST(image_reference, joins_name_components_as_the_specification_allows) {
    EXPECT_EQ(canonical("a.b/c_d/e__f/g---h"), "a.b/c_d/e__f/g---h:latest");
}

TEST(image_reference, digest_is_lower_case_sha256) {
    EXPECT_TRUE(is_digest(digest));
    EXPECT_FALSE(is_digest("sha256:" + std::string(64, 'A')));
    EXPECT_FALSE(is_digest("sha256:" + std::string(63, 'a')));
    EXPECT_FALSE(is_digest(std::string(71, 'a')));
}

} // namespace
} // namespace gantry::images
