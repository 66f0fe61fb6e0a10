#include "core/images/reference.hpp"

#include <gtest/gtest.h>

namespace gantry::core {
namespace {

std::string of(std::string_view image) {
    const auto name = with_default_tag(image);
    return name ? *name : name.error().message;
}

std::string refused(const std::string& image, const std::string& why) {
    return "Failed to apply default image tag \"" + image + "\": couldn't parse image name \"" + image + "\": " + why;
}

TEST(image_reference, gets_latest_only_without_tag_and_digest) {
    EXPECT_EQ(of("nginx"), "nginx:latest");
    EXPECT_EQ(of("nginx:1.2"), "nginx:1.2");
    EXPECT_EQ(of("reg:5000/a/b"), "reg:5000/a/b:latest");
    EXPECT_EQ(of("localhost/a"), "localhost/a:latest");
    EXPECT_EQ(of("[::1]:5000/a"), "[::1]:5000/a:latest");
    const std::string digest = "@sha256:" + std::string(64, 'a');
    EXPECT_EQ(of("a/b" + digest), "a/b" + digest);
    EXPECT_EQ(of("a/b:t" + digest), "a/b:t" + digest);
    EXPECT_EQ(of("x/a__b.c--d/e_f"), "x/a__b.c--d/e_f:latest");
}

TEST(image_reference, refuses_in_the_kubelets_words) {
    EXPECT_EQ(of("Bad_NAME/UPPER:1"),
              refused("Bad_NAME/UPPER:1", "invalid reference format: repository name (UPPER) must be lowercase"));
    EXPECT_EQ(of("busybox:bad:tag"), refused("busybox:bad:tag", "invalid reference format"));
    for (const auto* bad : {"", ":1", "a//b", "a/", "-a", "a_", "a..b", "a___b", "a:", "a@sha256:short", "a@x", "a b",
                            "bad_host.x:1/a", "reg:port/a"})
        EXPECT_EQ(of(bad), refused(bad, "invalid reference format")) << bad;
    EXPECT_NE(of(std::string(64, 'a')).find("cannot specify 64-byte hexadecimal strings"), std::string::npos);
}

} // namespace
} // namespace gantry::core
