// Operations as coroutines: awaits, their order and thread, interruption by cancel and by stop.
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/sdk/plugin_under_test.hpp"

namespace gantry::sdk_test {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class flows {
public:
    static inline std::vector<std::string> trail;
    static inline std::weak_ptr<int> guard; ///< lives as long as the frame that made it

    result<void> init(sdk::host& host) {
        host_ = &host;
        trail.clear();
        return {};
    }
    result<void> activate() {
        host_->launch(background());
        return {};
    }

    sdk::task<result<sdk::reply>> run(sdk::request request, sdk::op op) {
        const auto held = std::make_shared<int>(1);
        guard = held;
        const auto lane = std::this_thread::get_id();
        const auto& what = request.bytes;
        if (what == "work") {
            GANTRY_CO_TRY(const auto elsewhere,
                          co_await host_->work([&] { return std::this_thread::get_id() != lane; }));
            if (!elsewhere || std::this_thread::get_id() != lane) co_return error{.message = "on the wrong thread"};
            co_return sdk::reply{.bytes = "ok"};
        }
        if (what == "work-throws") {
            GANTRY_CO_CHECK(co_await host_->work([] { throw std::runtime_error("thrown by a worker"); }));
        }
        if (what == "work-fails") {
            GANTRY_CO_TRY(const auto n,
                          co_await host_->work([]() -> result<int> { return sys_error("open /x", ENOENT); }));
            co_return sdk::reply{.bytes = std::to_string(n)};
        }
        if (what == "call") {
            GANTRY_CO_TRY(auto answer, co_await host_->call("peer/1", "echo", "x", op.deadline()));
            co_return answer;
        }
        if (what == "helper") {
            sdk::command exits{.argv = {"/bin/sh", "-c", "exit 3"}};
            GANTRY_CO_TRY(const auto status, co_await host_->run(exits));
            co_return sdk::reply{.bytes = status.text()};
        }
        if (what == "helper-cancelled") {
            sdk::command sleeps{.argv = {"/bin/sleep", "1000"}};
            const auto status = co_await host_->run(sleeps);
            co_return status ? error{.message = "ended"} : status.error();
        }
        if (what == "stream") {
            sdk::reply first{.bytes = "0"};
            GANTRY_CO_CHECK(co_await host_->send(op, first));
            for (int i = 1;; ++i) GANTRY_CO_CHECK(co_await host_->send(op, std::to_string(i)));
        }
        if (what == "cleanup") {
            const auto slept = co_await host_->sleep(1h);
            const auto cleaned = co_await host_->sleep(1ms); // an await after the interruption works
            co_return error{.code = code::cancelled,
                            .message = std::string(slept ? "slept" : "interrupted") + (cleaned ? ", cleaned" : "")};
        }
        if (what == "loop") {
            GANTRY_CO_TRY(const int n, co_await count_steps(100000));
            co_return sdk::reply{.bytes = std::to_string(n)};
        }
        if (what == "nested-throw") GANTRY_CO_CHECK(co_await fails());
        GANTRY_CO_CHECK(co_await host_->sleep(1h));
        co_return sdk::reply{};
    }
    static const void* capability(std::string_view) {
        static constexpr auto network =
            sdk::capability<gantry_network>([](auto& t) { t.add = sdk::op_fn<&flows::run>; });
        return &network;
    }

private:
    sdk::task<void> background() {
        const auto slept = co_await host_->sleep(1h);
        trail.push_back(slept ? "slept" : "background interrupted");
        (void)co_await host_->sleep(1h); // destroyed here
        trail.push_back("never");
    }
    sdk::task<result<int>> count_steps(int n) {
        int sum = 0;
        for (int i = 0; i < n; ++i) {
            GANTRY_CO_TRY(const int one, co_await step());
            sum += one;
        }
        co_return sum;
    }
    sdk::task<result<int>> step() { co_return 1; }
    sdk::task<result<void>> fails() {
        GANTRY_CO_CHECK(co_await host_->sleep(1ms));
        throw std::runtime_error("thrown by a nested coroutine");
    }

    sdk::host* host_ = nullptr;
};

struct coroutine_test : ::testing::Test, started<flows> {
    void SetUp() override { ASSERT_TRUE(begun.ok()) << begun.error.message; }
    fake::outcome run(const char* what) { return plugin.call(network->add, {what}); }
};

TEST_F(coroutine_test, work_runs_elsewhere_and_resumes_on_the_lane) {
    const auto end = run("work");
    EXPECT_EQ(end.bytes, "ok") << end.error.message;
}

TEST_F(coroutine_test, failure_and_exception_of_work_come_back_as_errors) {
    EXPECT_EQ(run("work-fails").error.sys_errno, ENOENT);
    EXPECT_THAT(run("work-throws").error.message, HasSubstr("thrown by a worker"));
}

TEST_F(coroutine_test, peer_answers) {
    host.add_peer("peer/1", "echo", [](const auto& bytes, const auto&, const auto&) {
        return fake::outcome{{}, bytes + "!", {}};
    });
    EXPECT_EQ(run("call").bytes, "x!");
}

TEST_F(coroutine_test, missing_peer_is_an_error) { EXPECT_EQ(run("call").error.code, GANTRY_UNAVAILABLE); }

TEST_F(coroutine_test, helper_exit_status_comes_back) { EXPECT_EQ(run("helper").bytes, "exit code 3"); }

TEST_F(coroutine_test, cancel_kills_the_helper) {
    const auto op = plugin.begin(network->add, {"helper-cancelled"});
    plugin.cancel(op);
    EXPECT_EQ(plugin.wait(op).error.code, GANTRY_CANCELLED);
}

TEST_F(coroutine_test, full_stream_does_not_block_the_lane) {
    host.operations().most_items = 1;
    const auto op = plugin.begin(network->add, {"stream"});
    EXPECT_EQ(run("work").bytes, "ok");
    fake::outcome item;
    for (const char* expected : {"0", "1", "2"}) {
        ASSERT_TRUE(plugin.next_item(op, item));
        EXPECT_EQ(item.bytes, expected);
    }
    plugin.cancel(op);
    EXPECT_EQ(plugin.wait(op).error.code, GANTRY_CANCELLED);
    EXPECT_THAT(host.misbehaviour(), IsEmpty());
}

TEST_F(coroutine_test, cancel_interrupts_one_await_and_cleanup_still_works) {
    const auto op = plugin.begin(network->add, {"cleanup"});
    plugin.cancel(op);
    EXPECT_EQ(plugin.wait(op).error.message, "interrupted, cleaned");
}

TEST_F(coroutine_test, hundred_thousand_awaits_do_not_grow_the_stack) { EXPECT_EQ(run("loop").bytes, "100000"); }

TEST_F(coroutine_test, exception_passes_through_awaits_and_names_the_operation) {
    const auto end = run("nested-throw");
    EXPECT_EQ(end.error.code, GANTRY_INTERNAL);
    EXPECT_THAT(end.error.message, HasSubstr("flows::run threw thrown by a nested coroutine"));
}

TEST_F(coroutine_test, frame_is_freed_when_the_op_ends) {
    EXPECT_EQ(run("work").bytes, "ok");
    host.lane().sync([] {});
    EXPECT_TRUE(flows::guard.expired());
}

TEST_F(coroutine_test, stop_interrupts_then_destroys_what_is_suspended) {
    const auto op = plugin.begin(network->add, {"sleep"});
    EXPECT_FALSE(flows::guard.expired());
    plugin.stop();
    EXPECT_TRUE(flows::guard.expired());
    EXPECT_EQ(host.operations().result(op).error.code, GANTRY_CANCELLED);
    EXPECT_THAT(flows::trail, ::testing::ElementsAre("background interrupted"));
    EXPECT_THAT(host.misbehaviour(), IsEmpty());
}

} // namespace
} // namespace gantry::sdk_test
