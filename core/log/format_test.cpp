#include "core/log/format.hpp"

#include <gtest/gtest.h>

namespace gantry::core::log {
namespace {

const time_point at{std::chrono::milliseconds(1'796'061'967'123)}; // 2026-11-30T18:06:07.123Z

TEST(log_format, text_quotes_only_what_needs_it) {
    const field fields[] = {{"plugin", "net"}, {"pod", "default/web-0"}, {"error", "no \"x\""}, {"empty", ""}};
    EXPECT_EQ(text_line(at, log_level::warn, "add failed", fields),
              "2026-11-30T18:06:07.123Z WARN  add failed plugin=net pod=default/web-0 error=\"no \\\"x\\\"\" empty=\"\"\n");
}

TEST(log_format, json_is_one_object_a_line) {
    const field fields[] = {{"plugin", "net"}};
    EXPECT_EQ(json_line(at, log_level::info, "up\\", fields),
              "{\"ts\":\"2026-11-30T18:06:07.123Z\",\"level\":\"info\",\"msg\":\"up\\\\\",\"plugin\":\"net\"}\n");
}

TEST(log_format, a_message_cannot_forge_a_line) {
    EXPECT_EQ(text_line(at, log_level::info, "a\nb\x1b[1m", {}), "2026-11-30T18:06:07.123Z INFO  a\\nb\\u001b[1m\n");
    EXPECT_EQ(json_line(at, log_level::info, "a\r\n\x01", {}),
              "{\"ts\":\"2026-11-30T18:06:07.123Z\",\"level\":\"info\",\"msg\":\"a\\r\\n\\u0001\"}\n");
}

TEST(log_format, bytes_that_are_not_utf8_are_replaced) {
    std::string out;
    append_quoted(out, "\xc3\xa9 \xff \xc0\xaf \xed\xa0\x80 \xf0\x9f\x98\x80");
    EXPECT_EQ(out, "\"\xc3\xa9 \xef\xbf\xbd \xef\xbf\xbd\xef\xbf\xbd \xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd \xf0\x9f\x98\x80\"");
}

} // namespace
} // namespace gantry::core::log
