#include "core/host/lane.hpp"

#include <fcntl.h>
#include <signal.h>
#include <time.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <future>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/unique_fd.hpp"
#include "core/host/alarm_clock.hpp"
#include "core/host/executor.hpp"

namespace gantry::core {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

struct lane_test : testing::Test {
    void SetUp() override {
        auto started = lane::start("t-lane");
        ASSERT_TRUE(started) << started.error().message;
        lane_ = *std::move(started);
    }
    /// What was posted before has run.
    void settle() {
        std::promise<void> done;
        lane_->post([&] { done.set_value(); });
        done.get_future().wait();
    }
    bool eventually(const std::function<bool()>& condition) {
        const auto end = clock::now() + 10s;
        while (!condition() && clock::now() < end) std::this_thread::sleep_for(1ms);
        return condition();
    }
    std::unique_ptr<lane> lane_;
};

TEST_F(lane_test, runs_tasks_of_all_threads_one_at_a_time) {
    int running = 0, most = 0, done = 0;
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&] {
            for (int i = 0; i < 500; ++i)
                lane_->post([&] {
                    most = std::max(most, ++running);
                    ++done;
                    --running;
                });
        });
    for (auto& thread : threads) thread.join();
    settle();
    EXPECT_EQ(done, 2000);
    EXPECT_EQ(most, 1);
}

TEST_F(lane_test, keeps_the_order_of_one_thread) {
    std::vector<int> order;
    for (int i = 0; i < 100; ++i) lane_->post([&order, i] { order.push_back(i); });
    settle();
    for (int i = 0; i < 100; ++i) ASSERT_EQ(order[static_cast<std::size_t>(i)], i);
}

TEST_F(lane_test, runs_timers_by_their_time) {
    std::promise<void> last;
    std::vector<int> order;
    lane_->after(20ms, [&] {
        order.push_back(2);
        last.set_value();
    });
    lane_->after(1ms, [&] { order.push_back(1); });
    const auto never = lane_->after(10ms, [&] { order.push_back(99); });
    EXPECT_TRUE(lane_->cancel(never));
    EXPECT_FALSE(lane_->cancel(never));
    last.get_future().wait();
    EXPECT_EQ(order, (std::vector<int>{1, 2}));
    lane_->after(std::chrono::nanoseconds::max(), [] {}); // does not overflow into the past
    settle();
}

TEST_F(lane_test, watches_descriptors_until_they_are_unwatched) {
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    base::unique_fd read_end(ends[0]), write_end(ends[1]);
    std::atomic<int> bytes{0};
    const auto handle = lane_->watch(read_end.get(), EPOLLIN, [&](std::uint32_t events) {
        char c;
        if ((events & EPOLLIN) != 0 && ::read(read_end.get(), &c, 1) == 1) ++bytes;
    });
    ASSERT_GT(handle, 0u);
    ASSERT_EQ(::write(write_end.get(), "abc", 3), 3);
    EXPECT_TRUE(eventually([&] { return bytes == 3; })); // level-triggered: one byte a time
    lane_->post([&] { lane_->unwatch(handle); });
    settle();
    ASSERT_EQ(::write(write_end.get(), "d", 1), 1);
    settle();
    settle();
    EXPECT_EQ(bytes, 3);
    EXPECT_EQ(lane_->watch(-1, EPOLLIN, [](std::uint32_t) {}), 0u);
}

TEST_F(lane_test, an_unwatched_descriptor_leaves_it_asleep) {
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    base::unique_fd read_end(ends[0]), write_end(ends[1]);
    const auto handle = lane_->watch(read_end.get(), EPOLLIN, [](std::uint32_t) {});
    lane_->post([&] { lane_->unwatch(handle); });
    ASSERT_EQ(::write(write_end.get(), "x", 1), 1); // readable from now on, and nobody asks
    const auto cpu_time = [&] {
        timespec used{};
        lane_->post([&] { ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used); });
        settle();
        return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
    };
    settle();
    const auto before = cpu_time();
    std::this_thread::sleep_for(200ms);
    EXPECT_LT(cpu_time() - before, 5ms);
}

TEST_F(lane_test, a_descriptor_closed_too_early_does_not_spin) {
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    std::atomic<int> calls{0};
    const auto handle = lane_->watch(ends[0], EPOLLHUP, [&](std::uint32_t) { ++calls; });
    ::close(ends[0]);
    lane_->post([&] { lane_->unwatch(handle); });
    settle();
    ::close(ends[1]); // would report EPOLLHUP for ever
    settle();
    EXPECT_EQ(calls, 0);
}

TEST_F(lane_test, shows_since_when_it_is_busy) {
    EXPECT_EQ(lane_->busy_for(clock::now()), clock::duration::zero());
    std::promise<void> entered, leave;
    lane_->post([&] {
        entered.set_value();
        leave.get_future().wait();
    });
    entered.get_future().wait();
    EXPECT_TRUE(eventually([&] { return lane_->busy_for(clock::now()) > 5ms; }));
    leave.set_value();
    EXPECT_TRUE(eventually([&] { return lane_->busy_for(clock::now()) == clock::duration::zero(); }));
}

TEST_F(lane_test, finish_runs_what_is_queued_and_no_more) {
    int ran = 0;
    for (int i = 0; i < 10; ++i) lane_->post([&] { ++ran; });
    EXPECT_TRUE(lane_->finish(clock::now() + 10s));
    EXPECT_EQ(ran, 10);
    lane_->post([&] { ++ran; });
    EXPECT_EQ(ran, 10);
}

TEST_F(lane_test, finish_gives_up_on_a_lane_that_hangs) {
    auto leave = std::make_shared<std::promise<void>>();
    auto gone = std::make_shared<std::promise<void>>();
    lane_->post([leave, gone] {
        leave->get_future().wait();
        gone->set_value();
    });
    EXPECT_FALSE(lane_->finish(clock::now() + 20ms));
    lane_.reset(); // does not wait for it
    leave->set_value();
    gone->get_future().wait();
}

TEST_F(lane_test, blocks_signals_but_the_synchronous_ones) {
    sigset_t mask;
    lane_->post([&] { ::pthread_sigmask(SIG_BLOCK, nullptr, &mask); });
    settle();
    EXPECT_EQ(sigismember(&mask, SIGTERM), 1);
    EXPECT_EQ(sigismember(&mask, SIGCHLD), 1);
    EXPECT_EQ(sigismember(&mask, SIGSEGV), 0);
}

TEST(executor, runs_as_many_tasks_at_once_as_it_may) {
    executor workers("t-work", 3);
    std::atomic<int> running{0}, most{0};
    std::promise<void> all;
    std::atomic<int> left{12};
    for (int i = 0; i < 12; ++i)
        ASSERT_EQ(workers.submit([&] {
            const int now = ++running;
            int before = most;
            while (now > before && !most.compare_exchange_weak(before, now)) {}
            std::this_thread::sleep_for(5ms);
            --running;
            if (--left == 0) all.set_value();
        }),
                  code::ok);
    all.get_future().wait();
    EXPECT_EQ(most, 3);
    EXPECT_TRUE(workers.finish(clock::now() + 10s));
    EXPECT_EQ(workers.submit([] {}), code::unavailable);
    workers.reopen();
    std::promise<void> again;
    ASSERT_EQ(workers.submit([&] { again.set_value(); }), code::ok);
    again.get_future().wait();
}

TEST(executor, refuses_what_it_cannot_queue) {
    executor workers("t-work", 1);
    std::promise<void> entered, leave;
    auto gate = leave.get_future().share();
    ASSERT_EQ(workers.submit([&entered, gate] {
        entered.set_value();
        gate.wait();
    }),
              code::ok);
    entered.get_future().wait();
    code last = code::ok;
    std::size_t accepted = 0;
    while (last == code::ok && accepted < 10'000) {
        last = workers.submit([] {});
        if (last == code::ok) ++accepted;
    }
    EXPECT_EQ(last, code::busy);
    EXPECT_EQ(accepted, executor::most_queued);
    EXPECT_FALSE(workers.finish(clock::now() + 10ms));
    leave.set_value();
    EXPECT_TRUE(workers.finish(clock::now() + 10s));
}

TEST(alarm_clock, rings_in_order_and_not_after_cancel) {
    alarm_clock alarms;
    std::promise<void> last;
    std::vector<int> order; // of the clock's thread
    const auto now = clock::now();
    alarms.set(now + 30ms, [&] {
        order.push_back(3);
        last.set_value();
    });
    alarms.set(now + 10ms, [&] { order.push_back(1); });
    alarms.cancel(alarms.set(now + 20ms, [&] { order.push_back(2); }));
    alarms.cancel(0);
    last.get_future().wait();
    EXPECT_EQ(order, (std::vector<int>{1, 3}));
    alarms.set(clock::now() + 1h, [&] { order.push_back(4); });
    alarms.stop();
    EXPECT_EQ(order.size(), 2u);
}

} // namespace
} // namespace gantry::core
