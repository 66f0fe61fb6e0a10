#include "core/pod/backoff.hpp"

#include <vector>

#include <gtest/gtest.h>

#include "core/pod/go_duration.hpp"
#include "core/pod/names.hpp"

namespace gantry::core {
namespace {

using namespace std::chrono_literals;

base::wall_time at(std::chrono::seconds s) { return base::wall_time(s); }

TEST(crash_loop_backoff, lets_the_first_restart_run_at_once) {
    backoff b;
    EXPECT_EQ(b.next_try(1, at(100s)), at(100s));
}

TEST(crash_loop_backoff, doubles_until_five_minutes) {
    backoff b;
    auto now = at(1000s);
    std::vector<std::chrono::seconds> waits;
    for (int i = 0; i < 8; ++i) {
        const auto exit = now;
        now = b.next_try(1, exit);
        waits.push_back(std::chrono::duration_cast<std::chrono::seconds>(now - exit));
        b.step(1, exit, now);
    }
    EXPECT_EQ(waits, (std::vector<std::chrono::seconds>{0s, 10s, 20s, 40s, 80s, 160s, 300s, 300s}));
}

TEST(crash_loop_backoff, counts_from_the_exit_and_not_from_the_restart) {
    backoff b;
    b.step(1, at(100s), at(100s));
    EXPECT_EQ(b.next_try(1, at(150s)), at(160s));
}

TEST(crash_loop_backoff, starts_anew_after_ten_good_minutes) {
    backoff b;
    for (int i = 0; i < 6; ++i) b.step(1, at(100s), at(100s));
    EXPECT_EQ(b.next_try(1, at(700s)), at(1000s));
    EXPECT_EQ(b.next_try(1, at(701s)), at(701s));
}

TEST(crash_loop_backoff, starts_anew_when_image_or_resources_change) {
    model::container c{.name = "c", .image = "a:1"};
    backoff b;
    b.step(restart_hash(c), at(100s), at(100s));
    EXPECT_EQ(b.next_try(restart_hash(c), at(101s)), at(111s));
    c.resources.ensure().limits["memory"] = model::quantity::of_units(1 << 20);
    EXPECT_EQ(b.next_try(restart_hash(c), at(101s)), at(101s));
    c.resources.reset();
    c.image = "a:2";
    EXPECT_EQ(b.next_try(restart_hash(c), at(101s)), at(101s));
}

TEST(go_duration, reads_as_go_prints) {
    EXPECT_EQ(go_duration(10s), "10s");
    EXPECT_EQ(go_duration(80s), "1m20s");
    EXPECT_EQ(go_duration(300s), "5m0s");
    EXPECT_EQ(go_duration(3601s), "1h0m1s");
    EXPECT_EQ(go_duration(1500ms), "1.5s");
    EXPECT_EQ(go_duration(2043ms), "2.043s");
    EXPECT_EQ(go_duration(7ms), "7ms");
    EXPECT_EQ(go_duration(0s), "0s");
}

} // namespace
} // namespace gantry::core
