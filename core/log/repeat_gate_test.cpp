#include "core/log/repeat_gate.hpp"

#include <gtest/gtest.h>

namespace gantry::core::log {
namespace {

using namespace std::chrono_literals;
constexpr repeat_gate::time_point start{1h};

TEST(repeat_gate, passes_one_of_equal_faults_each_step) {
    repeat_gate gate(10s, 40s);
    EXPECT_EQ(gate.pass("pod", "no ip", start), 0u);
    EXPECT_FALSE(gate.pass("pod", "no ip", start + 1s));
    EXPECT_FALSE(gate.pass("pod", "no ip", start + 9s));
    EXPECT_EQ(gate.pass("pod", "no ip", start + 10s), 2u);
    EXPECT_FALSE(gate.pass("pod", "no ip", start + 29s)); // the step has doubled
    EXPECT_EQ(gate.pass("pod", "no ip", start + 30s), 1u);
    EXPECT_EQ(gate.pass("pod", "no ip", start + 70s), 0u);
    EXPECT_EQ(gate.pass("pod", "no ip", start + 110s), 0u); // and stays at its bound
}

TEST(repeat_gate, passes_changes_other_objects_and_what_came_back) {
    repeat_gate gate;
    EXPECT_TRUE(gate.pass("pod", "no ip", start));
    EXPECT_TRUE(gate.pass("pod", "no image", start));
    EXPECT_TRUE(gate.pass("other", "no image", start));
    EXPECT_FALSE(gate.pass("other", "no image", start));
    gate.clear("other");
    EXPECT_TRUE(gate.pass("other", "no image", start));
}

TEST(repeat_gate, forgets_the_oldest_of_too_many_objects) {
    repeat_gate gate;
    EXPECT_TRUE(gate.pass("first", "x", start));
    for (int i = 0; i < 4096; ++i) EXPECT_TRUE(gate.pass(std::to_string(i), "x", start + 1s));
    EXPECT_FALSE(gate.pass("4095", "x", start + 1s));
    EXPECT_TRUE(gate.pass("first", "x", start + 1s));
}

} // namespace
} // namespace gantry::core::log
