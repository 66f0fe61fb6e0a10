#include "core/logs/cri_line.hpp"

#include <gtest/gtest.h>

namespace gantry::core::logs {
namespace {

TEST(parse_cri_line, reads_time_stream_tag_and_payload) {
    const auto line = parse_cri_line("2026-01-02T03:04:05.000000006Z stderr P a  b ");
    ASSERT_TRUE(line);
    EXPECT_EQ(line->time, "2026-01-02T03:04:05.000000006Z");
    EXPECT_EQ(line->stream, "stderr");
    EXPECT_TRUE(line->partial);
    EXPECT_EQ(line->payload, "a  b ");
}

TEST(parse_cri_line, takes_an_empty_payload_and_extra_tags) {
    const auto line = parse_cri_line("2026-01-02T03:04:05Z stdout F:x ");
    ASSERT_TRUE(line);
    EXPECT_FALSE(line->partial);
    EXPECT_EQ(line->payload, "");
}

TEST(parse_cri_line, refuses_what_is_not_a_record) {
    EXPECT_FALSE(parse_cri_line(""));
    EXPECT_FALSE(parse_cri_line("hello world"));
    EXPECT_FALSE(parse_cri_line("2026-01-02T03:04:05Z stdin F x"));
    EXPECT_FALSE(parse_cri_line("2026-01-02T03:04:05Z stdout X x"));
    EXPECT_FALSE(parse_cri_line("2026-01-02T03:04:05Z stdout F"));
}

TEST(is_before, compares_fractions_of_different_length) {
    EXPECT_TRUE(is_before("2026-01-02T03:04:05.1Z", "2026-01-02T03:04:05.11Z"));
    EXPECT_FALSE(is_before("2026-01-02T03:04:05.10Z", "2026-01-02T03:04:05.1Z"));
    EXPECT_TRUE(is_before("2026-01-02T03:04:05Z", "2026-01-02T03:04:05.000000001Z"));
    EXPECT_FALSE(is_before("2026-01-02T03:04:06Z", "2026-01-02T03:04:05.9Z"));
}

} // namespace
} // namespace gantry::core::logs
