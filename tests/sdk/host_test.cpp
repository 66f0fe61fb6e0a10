// sdk::host: every service, through the fake host.
#include <sys/epoll.h>
#include <unistd.h>

#include <filesystem>
#include <future>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/sdk/plugin_under_test.hpp"

namespace gantry::sdk_test {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

struct probe {
    static inline sdk::host* host = nullptr;
    static inline sdk::metric count, level;
    result<void> init(sdk::host& h) {
        host = &h;
        GANTRY_TRY(count, h.counter("things_total", "Things."));
        GANTRY_TRY(level, h.gauge("level", "A level."));
        const auto again = h.counter("things_total", "Twice.");
        const auto malformed = h.histogram("Bad Name", "Malformed.");
        if (again || malformed) return error{.message = "a bad metric was accepted"};
        return {};
    }
};

struct host_test : ::testing::Test, started<probe> {
    void SetUp() override { ASSERT_TRUE(begun.ok()) << begun.error.message; }
    sdk::host& it() { return *probe::host; }
    /// Runs f on a worker thread of the host and gives its result.
    template <class F>
    auto on_worker(F f) {
        std::promise<decltype(f())> done;
        auto future = done.get_future();
        EXPECT_TRUE(it().submit([&] { done.set_value(f()); }).ok());
        return future.get();
    }
    template <class F>
    auto on_lane(F f) {
        return host.lane().sync(std::move(f));
    }
};

TEST_F(host_test, config_is_readable) {
    EXPECT_EQ(it().instance(), "test");
    EXPECT_EQ(it().node_name(), "node-1");
    EXPECT_EQ(it().node_instance(), "t1");
    EXPECT_EQ(it().config_json(), "{}");
    EXPECT_TRUE(std::filesystem::is_directory(it().state_dir()));
    EXPECT_TRUE(std::filesystem::is_directory(it().run_dir()));
}

TEST_F(host_test, log_line_has_level_and_fields) {
    it().warn("disk is slow", {{"device", "sda"}, {"ms", "80"}});
    const auto lines = host.logs();
    ASSERT_EQ(lines.size(), 1u);
    EXPECT_EQ(lines[0].level, GANTRY_LOG_WARN);
    EXPECT_EQ(lines[0].message, "disk is slow");
    EXPECT_EQ(lines[0].fields.at("device"), "sda");
}

TEST_F(host_test, line_below_the_level_is_not_written) {
    host.set_log_level(GANTRY_LOG_WARN);
    it().info("unseen");
    EXPECT_FALSE(it().enabled(sdk::level::info));
    EXPECT_THAT(host.logs(), IsEmpty());
}

TEST_F(host_test, metrics_count_by_label_and_cannot_be_defined_after_init) {
    probe::count.record(2, "a");
    probe::count.record(3, "a");
    probe::level.record(5);
    probe::level.record(4);
    EXPECT_EQ(host.metric("things_total", "a"), 5);
    EXPECT_EQ(host.metric("level"), 4);
    EXPECT_THAT(it().counter("late_total", "Late.").error().message, HasSubstr("late_total"));
}

TEST_F(host_test, events_go_out_and_come_in_until_unsubscribed) {
    it().publish("pods", "uid-1", "running");
    ASSERT_EQ(host.published().size(), 1u);
    EXPECT_EQ(host.published()[0].key, "uid-1");
    it().emit(R"({"reason": "Pulled"})");
    EXPECT_THAT(host.emitted(), ElementsAre(R"({"reason": "Pulled"})"));

    std::string seen;
    auto subscription = it().subscribe("nodes", [&](auto topic, auto key, auto bytes) {
        seen += std::string(topic) + '/' + std::string(key) + '=' + std::string(bytes) + ' ';
    });
    ASSERT_TRUE(subscription);
    host.send_event("nodes", "n", "1");
    host.send_event("other", "n", "2");
    on_lane([&] { subscription->end(); });
    host.send_event("nodes", "n", "3");
    on_lane([] {});
    EXPECT_EQ(seen, "nodes/n=1 ");
}

TEST_F(host_test, subscription_may_end_itself) {
    int runs = 0;
    sdk::subscription own;
    on_lane([&] {
        auto made = it().subscribe("topic", [&](auto, auto, auto) {
            ++runs;
            own.end();
        });
        ASSERT_TRUE(made);
        own = *std::move(made);
    });
    host.send_event("topic", "", "");
    host.send_event("topic", "", "");
    on_lane([] {});
    EXPECT_EQ(runs, 1);
    EXPECT_THAT(host.misbehaviour(), IsEmpty());
}

TEST_F(host_test, timer_runs_once_and_cancelled_one_does_not) {
    std::promise<void> ran;
    auto timer = it().after(1ms, [&] { ran.set_value(); });
    ASSERT_TRUE(timer);
    ran.get_future().get();
    EXPECT_FALSE(on_lane([&] { return timer->cancel(); }));
    auto never = it().after(1h, [] { ADD_FAILURE(); });
    EXPECT_TRUE(on_lane([&] { return never->cancel(); }));
}

TEST_F(host_test, exception_in_a_callback_is_logged) {
    it().post([] { throw std::runtime_error("thrown on purpose"); });
    on_lane([] {});
    EXPECT_TRUE(host.logged("a posted function threw thrown on purpose"));
}

TEST_F(host_test, watched_descriptor_reports_until_the_watch_ends) {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    std::promise<std::string> got;
    sdk::watch watch;
    on_lane([&] {
        auto made = it().watch_fd(ends[0], EPOLLIN, [&](int fd, std::uint32_t) {
            char text[8];
            const auto n = ::read(fd, text, sizeof(text));
            watch.end(); // inside its own callback
            got.set_value(std::string(text, static_cast<std::size_t>(n)));
        });
        ASSERT_TRUE(made);
        watch = *std::move(made);
    });
    ASSERT_EQ(::write(ends[1], "ping", 4), 4);
    EXPECT_EQ(got.get_future().get(), "ping");
    EXPECT_THAT(it().watch_fd(1000000, EPOLLIN, [](int, std::uint32_t) {}).error().message, HasSubstr("1000000"));
    ::close(ends[0]);
    ::close(ends[1]);
}

TEST_F(host_test, state_is_kept_listed_and_erased) {
    EXPECT_EQ(it().get("lease").error().code, code::not_found);
    ASSERT_TRUE(it().put("lease", "10.0.0.1"));
    ASSERT_TRUE(it().put("other", "x"));
    EXPECT_EQ(*it().get("lease"), "10.0.0.1");
    EXPECT_THAT(*it().keys(), UnorderedElementsAre("lease", "other"));
    ASSERT_TRUE(it().erase("lease"));
    EXPECT_EQ(it().get("lease").error().code, code::not_found);
    EXPECT_THAT(it().put("../escape", "x").error().message, HasSubstr("../escape"));
}

TEST_F(host_test, helper_gets_its_descriptors_and_environment) {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    const auto status = on_worker([&] {
        return it().run_wait(
            {.argv = {"/bin/sh", "-c", "echo $WORD"}, .env = {"WORD=hello"}, .fds = {-1, ends[1], -1}});
    });
    ::close(ends[1]);
    ASSERT_TRUE(status) << status.error().message;
    EXPECT_TRUE(status->success());
    char text[16];
    ASSERT_EQ(::read(ends[0], text, sizeof(text)), 6);
    EXPECT_EQ(std::string(text, 6), "hello\n");
    ::close(ends[0]);
}

TEST_F(host_test, helper_is_killed_at_its_deadline) {
    const auto status = on_worker([&] {
        return it().run_wait({.argv = {"/bin/sleep", "1000"}, .deadline = std::chrono::steady_clock::now() + 20ms});
    });
    ASSERT_TRUE(status);
    EXPECT_TRUE(status->timed_out);
    EXPECT_EQ(status->text(), "killed at its deadline");
}

TEST_F(host_test, helper_is_killed_when_its_caller_gives_up) {
    std::stop_source stop;
    stop.request_stop();
    const auto status = on_worker([&] { return it().run_wait({.argv = {"/bin/sleep", "1000"}}, stop.get_token()); });
    EXPECT_EQ(status.error().code, code::cancelled);
}

TEST_F(host_test, helper_that_cannot_start_says_why) {
    const auto status = on_worker([&] { return it().run_wait({.argv = {"/no/such/program"}}); });
    EXPECT_EQ(status.error().sys_errno, ENOENT);
    EXPECT_THAT(status.error().message, HasSubstr("/no/such/program"));
    EXPECT_EQ(on_worker([&] { return it().run_wait({.argv = {}}); }).error().code, code::invalid);
}

TEST_F(host_test, peer_is_called_by_waiting_and_by_callback) {
    host.add_peer("peer/1", "echo", [](const auto& bytes, const auto& fds, const auto& key) {
        return fake::outcome{{}, key + ':' + bytes, fds};
    });
    host.add_peer("peer/1", "fail", [](const auto&, const auto&, const auto&) {
        return fake::outcome{{GANTRY_NOT_FOUND, 0, false, 0, "no such thing", ""}, "", {}};
    });
    sdk::request with{.bytes = "x", .key = "k"};
    with.fds.push_back(*sdk::fd::dup(0));
    const auto answer = on_worker([&] { return it().call_wait("peer/1", "echo", with, sdk::time_point::max()); });
    ASSERT_TRUE(answer) << answer.error().message;
    EXPECT_EQ(answer->bytes, "k:x");
    EXPECT_EQ(answer->fds.size(), 1u);
    EXPECT_EQ(on_worker([&] { return it().call_wait("peer/1", "fail", {}, sdk::time_point::max()); }).error().message,
              "no such thing");

    std::promise<std::string> got;
    ASSERT_TRUE(it().call("peer/1", "echo", {.bytes = "y"}, sdk::time_point::max(), [&](result<sdk::reply> r) {
        got.set_value((host.lane().here() ? "lane" : "elsewhere") + r->bytes);
    }));
    EXPECT_EQ(got.get_future().get(), "lane:y");
    EXPECT_THAT(it().call("peer/1", "absent", {}, sdk::time_point::max(), [](auto) {}).error().message,
                HasSubstr("peer/1 absent"));
}

} // namespace
} // namespace gantry::sdk_test
