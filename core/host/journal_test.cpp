#include "core/host/journal.hpp"

#include <gtest/gtest.h>

namespace gantry::core {
namespace {

using namespace std::chrono_literals;

void open_and_close(op_journal& journal, const std::string& pod, std::uint64_t id) {
    journal.opened(pod, {.id = id, .plugin = "net", .op = "add"});
    journal.closed(pod, id, 5ms, code::ok, "");
}

TEST(journal, tells_the_steps_of_a_pod_in_order) {
    op_journal journal;
    journal.opened("uid", {.id = 1, .plugin = "native", .op = "run_pod_sandbox"});
    journal.opened("uid", {.id = 2, .plugin = "net", .op = "add", .caller = "native"});
    journal.traced("uid", 2, {.name = "veth made", .at = 1ms});
    journal.progressed("uid", 1, "layer 3/7");
    journal.closed("uid", 2, 3ms, code::resource, "no address left in 10.88.0.0/16");
    const auto steps = journal.steps("uid");
    ASSERT_EQ(steps.size(), 2u);
    EXPECT_TRUE(steps[0].open);
    EXPECT_EQ(steps[0].progress, "layer 3/7");
    EXPECT_FALSE(steps[1].open);
    EXPECT_EQ(steps[1].caller, "native");
    EXPECT_EQ(steps[1].code, code::resource);
    EXPECT_EQ(steps[1].message, "no address left in 10.88.0.0/16");
    ASSERT_EQ(steps[1].steps.size(), 1u);
    EXPECT_EQ(steps[1].steps[0].name, "veth made");
}

TEST(journal, keeps_the_last_steps_and_every_open_one) {
    op_journal journal;
    journal.opened("uid", {.id = 1, .op = "watch"});
    for (std::uint64_t id = 2; id < 200; ++id) open_and_close(journal, "uid", id);
    const auto steps = journal.steps("uid");
    ASSERT_EQ(steps.size(), 65u);
    EXPECT_EQ(steps.front().op, "watch");
    EXPECT_EQ(steps.back().id, 199u);
}

TEST(journal, forgets_the_pod_that_was_not_touched_longest) {
    op_journal journal;
    for (int pod = 0; pod < 1024; ++pod) open_and_close(journal, std::to_string(pod), 1);
    open_and_close(journal, "0", 2);
    open_and_close(journal, "new", 1);
    EXPECT_EQ(journal.steps("0").size(), 2u);
    EXPECT_TRUE(journal.steps("1").empty());
    journal.forget("0");
    EXPECT_TRUE(journal.steps("0").empty());
    journal.closed("gone", 9, 1ms, code::ok, ""); // of a pod that was forgotten meanwhile
}

} // namespace
} // namespace gantry::core
