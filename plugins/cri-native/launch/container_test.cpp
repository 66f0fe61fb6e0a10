#include <gtest/gtest.h>

#include "plugins/cri-native/launch/testing.hpp"

namespace gantry::cri_native::launch::testing {
namespace {

TEST(container, runs_and_reports_its_exit_code) {
    pod p;
    ASSERT_FALSE(p.failure()) << p.failure()->message;
    const auto end = p.run(p.shell("c1", "echo hello; echo oops >&2; exit 7"));
    ASSERT_TRUE(end) << end.error().message;
    EXPECT_EQ(end->exit_code, 7);
    EXPECT_EQ(p.log("c1", "stdout"), "hello\n");
    EXPECT_EQ(p.log("c1", "stderr"), "oops\n");
}

} // namespace
} // namespace gantry::cri_native::launch::testing
