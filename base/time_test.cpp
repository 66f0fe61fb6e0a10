#include "base/time.hpp"

#include <gtest/gtest.h>

namespace gantry::base {
namespace {

using namespace std::chrono;

wall_time at(std::int64_t nanos) { return wall_time(nanoseconds(nanos)); }

TEST(format_rfc3339, writes_utc_with_the_wanted_fraction) {
    EXPECT_EQ(format_rfc3339(at(1'000'000'000'123'456'789)), "2001-09-09T01:46:40Z");
    EXPECT_EQ(format_rfc3339(at(1'000'000'000'123'456'789), 6), "2001-09-09T01:46:40.123456Z");
    EXPECT_EQ(format_rfc3339(at(1'000'000'000'000'000'006), 9), "2001-09-09T01:46:40.000000006Z");
    EXPECT_EQ(format_rfc3339(at(-1), 9), "1969-12-31T23:59:59.999999999Z");
}

TEST(parse_rfc3339, reads_what_format_wrote) {
    for (const std::int64_t nanos : {0L, 1L, -1L, 1'000'000'000'123'456'789L, 951'782'400'000'000'000L})
        EXPECT_EQ(parse_rfc3339(format_rfc3339(at(nanos), 9)), at(nanos));
}

TEST(parse_rfc3339, applies_offsets) {
    EXPECT_EQ(parse_rfc3339("2001-09-09T03:46:40+02:00"), at(1'000'000'000'000'000'000));
    EXPECT_EQ(parse_rfc3339("2001-09-09t01:46:40.5z"), at(1'000'000'000'500'000'000));
}

TEST(parse_rfc3339, refuses_anything_else) {
    for (const char* text : {"", "2001-09-09", "2001-09-09 01:46:40Z", "2001-02-30T01:46:40Z", "2001-09-09T24:46:40Z",
                             "2001-09-09T01:46:40", "2001-09-09T01:46:40.Z", "2001-09-09T01:46:40Zx", "2001-09-09T01:46:40+2:00"})
        EXPECT_FALSE(parse_rfc3339(text)) << text;
}

} // namespace
} // namespace gantry::base
