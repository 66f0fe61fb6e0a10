#include "core/cli/table.hpp"

#include <gtest/gtest.h>

namespace gantry::core::cli {
namespace {

using std::chrono::seconds;

TEST(render_table, aligns_columns_and_leaves_no_trailing_spaces) {
    EXPECT_EQ(render_table({{"NAME", "READY", "X"}, {"web", "1/1", ""}, {"a-longer-name", "0/2", "y"}}),
              "NAME           READY  X\n"
              "web            1/1\n"
              "a-longer-name  0/2    y\n");
}

TEST(render_table, counts_code_points_not_bytes) {
    EXPECT_EQ(render_table({{"né", "x"}, {"abc", "y"}}), "né   x\nabc  y\n");
}

TEST(short_duration, uses_the_steps_kubectl_uses) {
    EXPECT_EQ(short_duration(seconds(-3)), "0s");
    EXPECT_EQ(short_duration(seconds(119)), "119s");
    EXPECT_EQ(short_duration(seconds(120)), "2m");
    EXPECT_EQ(short_duration(seconds(192)), "3m12s");
    EXPECT_EQ(short_duration(seconds(601)), "10m");
    EXPECT_EQ(short_duration(seconds(3 * 3600 + 300)), "3h5m");
    EXPECT_EQ(short_duration(seconds(9 * 3600)), "9h");
    EXPECT_EQ(short_duration(seconds(3 * 86400 + 7200)), "3d2h");
    EXPECT_EQ(short_duration(seconds(30 * 86400)), "30d");
}

TEST(short_size, keeps_two_digits_that_matter) {
    EXPECT_EQ(short_size(0), "0B");
    EXPECT_EQ(short_size(1023), "1023B");
    EXPECT_EQ(short_size(4000), "3.9KiB");
    EXPECT_EQ(short_size(28u << 20), "28MiB");
}

TEST(age_of, reads_rfc3339_with_fractions) {
    const auto now = std::chrono::system_clock::from_time_t(1000000100);
    EXPECT_EQ(age_of("2001-09-09T01:46:40.123456789Z", now), "100s");
    EXPECT_EQ(age_of("yesterday", now), "<unknown>");
}

} // namespace
} // namespace gantry::core::cli
