// What the host does about plugins that break the rules and live on.
#include <sys/stat.h>
#include <unistd.h>

#include <thread>

#include "tests/host/host_fixture.hpp"

namespace gantry::core {
namespace {

using namespace std::chrono_literals;

class misbehaviour : public host_fixture {
protected:
    void SetUp() override {
        host_fixture::SetUp();
        add("mis");
        start();
    }
    std::uint64_t faults(const std::string& kind) { return info("mis").faults[kind]; }
    /// Runs `what` past the 100 ms within which changes of a thread are sampled, so that it is found after this very call.
    void do_and_look(const std::string& what) {
        std::this_thread::sleep_for(110ms);
        EXPECT_EQ(call(what), what);
        EXPECT_EQ(call("hello"), "hello"); // the look came after the completion, before the next call
    }
};

TEST_F(misbehaviour, completing_twice_is_counted) {
    EXPECT_EQ(call("twice"), "twice");
    EXPECT_TRUE(eventually([&] { return faults("double_complete") == 1; }));
}

TEST_F(misbehaviour, an_error_without_message_is_counted_and_gets_one) {
    EXPECT_EQ(call("silent-failure"), "internal: mis: run failed (internal) and gave no reason");
    EXPECT_TRUE(eventually([&] { return faults("error_without_message") == 1; }));
}

TEST_F(misbehaviour, umask_is_put_back) {
    const auto before = ::umask(022);
    ::umask(before);
    do_and_look("umask");
    EXPECT_EQ(faults("umask_changed"), 1u);
    const auto after = ::umask(before);
    EXPECT_EQ(after, before);
}

TEST_F(misbehaviour, the_working_directory_is_put_back) {
    char before[4096], after[4096];
    ASSERT_NE(::getcwd(before, sizeof before), nullptr);
    do_and_look("chdir");
    EXPECT_EQ(faults("cwd_changed"), 1u);
    ASSERT_NE(::getcwd(after, sizeof after), nullptr);
    EXPECT_STREQ(before, after);
}

TEST_F(misbehaviour, a_changed_environment_is_noticed) {
    do_and_look("setenv");
    EXPECT_EQ(faults("environment_changed"), 1u);
    ::unsetenv("GANTRY_MISCHIEF");
}

TEST_F(misbehaviour, the_signal_mask_is_put_back) {
    do_and_look("sigmask");
    do_and_look("hello");
    EXPECT_EQ(faults("sigmask_changed"), 1u);
}

TEST_F(misbehaviour, a_foreign_network_namespace_is_left_again) {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root";
    do_and_look("netns");
    do_and_look("hello");
    EXPECT_EQ(faults("netns_changed"), 1u);
}

TEST_F(misbehaviour, fork_is_noticed_and_its_child_ended) {
    EXPECT_EQ(call("fork"), "fork");
    EXPECT_TRUE(eventually([&] { return faults("fork") == 1; }));
}

TEST_F(misbehaviour, a_lane_that_hangs_fails_its_ops_and_comes_back) {
    std::string hanging = "open", waiting = "open";
    const auto say = [](std::string& to) {
        return [&to](result<op_reply> reply) { to = reply ? reply->bytes : reply.error().message; };
    };
    spawn_call("sleep-1500", say(hanging));
    spawn_call("hello", say(waiting));
    EXPECT_TRUE(eventually([&] { return info("mis").state == plugin_state::hung; }));
    const std::string reason = "mis: run has not returned for 300 ms, its lane hangs";
    EXPECT_EQ(info("mis").reason, reason);
    EXPECT_TRUE(eventually([&] { return hanging != "open" && waiting != "open"; }));
    EXPECT_EQ(hanging, "mis: run was given up: " + reason);
    EXPECT_EQ(waiting, "mis: run was not started: " + reason);
    EXPECT_EQ(call("hello"), "unavailable: " + reason);
    EXPECT_TRUE(eventually([&] { return info("mis").state == plugin_state::active; }));
    EXPECT_EQ(call("hello"), "hello");
    EXPECT_EQ(faults("lane_stall"), 1u);
    EXPECT_EQ(faults("late_complete"), 1u);
}

class hanging_start : public host_fixture {};

TEST_F(hanging_start, keeps_nobody_else_from_starting) {
    add("stuck", {{"init", "sleep-1500"}});
    add("good");
    options_.config.bind.capabilities[mischief_capability] = "good";
    start();
    EXPECT_EQ(info("stuck").state, plugin_state::hung);
    EXPECT_EQ(info("stuck").reason, "stuck: init has not returned for 300 ms, its lane hangs");
    EXPECT_EQ(call("hello"), "hello");
    EXPECT_TRUE(eventually([&] { return info("stuck").state == plugin_state::failed; }));
    const auto enabled = wait(host_->enable("stuck")); // its init takes as long again
    EXPECT_FALSE(enabled);
    EXPECT_TRUE(eventually([&] { return info("stuck").state == plugin_state::failed; }));
}

class hanging_stop : public host_fixture {};

TEST_F(hanging_stop, does_not_hold_the_node) {
    add("mis", {{"stop", "pause"}});
    add("good");
    start();
    const auto begin = std::chrono::steady_clock::now();
    wait(host_->stop(100ms));
    host_.reset(); // leaves the lane to itself
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 20s);
}

} // namespace
} // namespace gantry::core
