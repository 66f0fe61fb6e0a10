#include "core/host/op_router.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <future>
#include <map>
#include <optional>
#include <thread>

#include <gtest/gtest.h>

#include "core/host/abi_copy.hpp"
#include "core/host/current_call.hpp"

namespace gantry::core {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

constexpr auto capability = "com.acme.test/1";

/// A plugin whose ops do what the test says.
struct fake_plugin {
    std::function<gantry_status(const gantry_request&, gantry_op)> run = [](const gantry_request&, gantry_op) { return GANTRY_OK; };
    std::function<gantry_status(const gantry_request&, gantry_op)> other = run;
};

struct fake_table {
    std::uint32_t struct_size = sizeof(fake_table);
    std::uint32_t flags = 0;
    gantry_op_fn run = [](void* self, const gantry_request* r, gantry_op op) { return static_cast<fake_plugin*>(self)->run(*r, op); };
    gantry_op_fn other = [](void* self, const gantry_request* r, gantry_op op) { return static_cast<fake_plugin*>(self)->other(*r, op); };
    gantry_op_fn absent = nullptr;
};
constexpr op_ref run_op{capability, "run", offsetof(fake_table, run)};
constexpr op_ref other_op{capability, "other", offsetof(fake_table, other)};

class recorder final : public op_listener {
public:
    explicit recorder(bool streams = false) : streams_(streams) {}
    bool streams() const override { return streams_; }
    bool item(op_reply reply) override {
        const std::lock_guard lock(mutex_);
        items_.push_back(std::move(reply.bytes));
        return true;
    }
    void completed(result<op_reply> outcome) override {
        const std::lock_guard lock(mutex_);
        ++times_;
        outcome_ = std::move(outcome);
        done_.notify_all();
    }
    /// The outcome's bytes, or "CODE: MESSAGE".
    std::string wait() {
        std::unique_lock lock(mutex_);
        if (!done_.wait_for(lock, 10s, [&] { return times_ > 0; })) return "nothing";
        return *outcome_ ? (*outcome_)->bytes : std::string(to_string(outcome_->error().code)) + ": " + outcome_->error().message;
    }
    bool done() {
        const std::lock_guard lock(mutex_);
        return times_ > 0;
    }
    int times() {
        const std::lock_guard lock(mutex_);
        return times_;
    }
    std::vector<std::string> items() {
        const std::lock_guard lock(mutex_);
        return items_;
    }

private:
    const bool streams_;
    std::mutex mutex_;
    std::condition_variable done_;
    int times_ = 0;
    std::vector<std::string> items_;
    std::optional<result<op_reply>> outcome_;
};

struct op_router_test : testing::Test {
    void SetUp() override {
        lane_ = *lane::start("t-router");
        make(64, 50ms);
    }
    void TearDown() override {
        lane_->finish(clock::now() + 10s);
        alarms_.stop();
    }
    void make(int concurrency, std::chrono::milliseconds grace) {
        router_ = std::make_unique<op_router>(op_router::settings{.instance = "net",
                                                                  .index = 5,
                                                                  .max_concurrency = concurrency,
                                                                  .grace = grace,
                                                                  .misbehaved =
                                                                      [this](const char* kind, const std::string&) {
                                                                          const std::lock_guard lock(mutex_);
                                                                          ++faults_[kind];
                                                                      },
                                                                  .after_call = [](const char*) {}},
                                              *lane_, alarms_, journal_);
        router_->open(&plugin_, {{capability, &table_}});
    }
    gantry_op submit(const std::shared_ptr<recorder>& listener, op_ref op = run_op, std::string key = {},
                     std::chrono::nanoseconds timeout = 60s, std::string uid = {}) {
        op_submission s;
        s.op = op;
        s.bytes = "in";
        s.key = std::move(key);
        s.timeout = timeout;
        s.pod_uid = std::move(uid);
        s.listener = listener;
        return router_->submit(std::move(s));
    }
    void complete(gantry_op op, std::string_view bytes) {
        const gantry_reply reply{.struct_size = sizeof reply, .fd_count = 0, .fds = nullptr, .bytes = borrow(bytes), .error = nullptr};
        router_->complete(op, &reply);
    }
    void fail(gantry_op op, gantry_status status, std::string_view message) {
        gantry_error e{};
        e.struct_size = sizeof e;
        e.code = status;
        e.message = borrow(message);
        const gantry_reply reply{.struct_size = sizeof reply, .fd_count = 0, .fds = nullptr, .bytes = {nullptr, 0}, .error = &e};
        router_->complete(op, &reply);
    }
    int faults(const std::string& kind) {
        const std::lock_guard lock(mutex_);
        return faults_[kind];
    }
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

    fake_plugin plugin_;
    fake_table table_;
    alarm_clock alarms_;
    op_journal journal_;
    std::unique_ptr<lane> lane_;
    std::mutex mutex_;
    std::map<std::string, int> faults_;
    std::unique_ptr<op_router> router_;
};

TEST_F(op_router_test, brings_a_request_to_the_plugin_and_its_reply_back) {
    plugin_.run = [&](const gantry_request& request, gantry_op op) {
        EXPECT_TRUE(lane_->on_lane());
        EXPECT_STREQ(current_call::get().instance, "net");
        EXPECT_STREQ(current_call::get().what, "run");
        EXPECT_EQ(view(request.bytes), "in");
        complete(op, "out");
        return GANTRY_OK;
    };
    auto listener = std::make_shared<recorder>();
    EXPECT_NE(submit(listener), 0u);
    EXPECT_EQ(listener->wait(), "out");
    settle();
    EXPECT_EQ(router_->totals().done, 1u);
    EXPECT_EQ(router_->totals().open, 0u);
}

TEST_F(op_router_test, passes_descriptors_both_ways) {
    plugin_.run = [&](const gantry_request& request, gantry_op op) {
        EXPECT_EQ(request.fd_count, 1u);
        EXPECT_NE(::fcntl(request.fds[0], F_GETFD) & FD_CLOEXEC, 0);
        const gantry_reply reply{.struct_size = sizeof reply, .fd_count = 1, .fds = request.fds, .bytes = {nullptr, 0}, .error = nullptr};
        router_->complete(op, &reply);
        return GANTRY_OK;
    };
    struct fd_recorder final : op_listener {
        std::promise<std::size_t> fds;
        void completed(result<op_reply> outcome) override { fds.set_value(outcome ? outcome->fds.size() : 99); }
    };
    auto listener = std::make_shared<fd_recorder>();
    op_submission s;
    s.op = run_op;
    s.fds.emplace_back(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    s.listener = listener;
    router_->submit(std::move(s));
    EXPECT_EQ(listener->fds.get_future().get(), 1u);
}

TEST_F(op_router_test, a_refused_op_tells_its_code) {
    plugin_.run = [](const gantry_request&, gantry_op) { return GANTRY_BUSY; };
    auto listener = std::make_shared<recorder>();
    submit(listener);
    EXPECT_EQ(listener->wait(), "busy: net: run was not accepted (busy)");
    EXPECT_EQ(router_->totals().open, 0u);
}

TEST_F(op_router_test, what_the_table_lacks_is_unsupported) {
    auto absent = std::make_shared<recorder>(), beyond = std::make_shared<recorder>(), foreign = std::make_shared<recorder>();
    EXPECT_EQ(submit(absent, {capability, "absent", offsetof(fake_table, absent)}), 0u);
    EXPECT_EQ(submit(beyond, {capability, "later", sizeof(fake_table)}), 0u);
    EXPECT_EQ(submit(foreign, {"com.acme.other/1", "run", 8}), 0u);
    EXPECT_EQ(absent->wait(), "unsupported: net: absent is not offered by this plugin (com.acme.test/1)");
    EXPECT_EQ(beyond->wait(), "unsupported: net: later is not offered by this plugin (com.acme.test/1)");
    EXPECT_EQ(foreign->wait(), "unsupported: net: run is not offered by this plugin (com.acme.other/1)");
}

TEST_F(op_router_test, a_closed_router_says_why) {
    router_->close("net is stopped");
    auto listener = std::make_shared<recorder>();
    EXPECT_EQ(submit(listener), 0u);
    EXPECT_EQ(listener->wait(), "unavailable: net is stopped");
}

TEST_F(op_router_test, completes_exactly_once_whatever_the_plugin_does) {
    gantry_op kept = 0;
    plugin_.run = [&](const gantry_request&, gantry_op op) {
        kept = op;
        complete(op, "first");
        complete(op, "second");
        return GANTRY_OK;
    };
    auto listener = std::make_shared<recorder>();
    submit(listener);
    EXPECT_EQ(listener->wait(), "first");
    settle();
    complete(kept, "third");
    EXPECT_EQ(listener->times(), 1);
    EXPECT_EQ(faults("double_complete"), 2);
    complete(0, "zero");
    complete(0xdead'0000'0001, "never issued");
    EXPECT_EQ(faults("unknown_op"), 2);
}

TEST_F(op_router_test, a_race_of_completions_has_one_winner) {
    for (int round = 0; round < 200; ++round) {
        std::promise<gantry_op> opened;
        plugin_.run = [&](const gantry_request&, gantry_op op) {
            opened.set_value(op);
            return GANTRY_OK;
        };
        auto listener = std::make_shared<recorder>();
        submit(listener);
        const auto op = opened.get_future().get();
        std::thread a([&] { complete(op, "a"); }), b([&] { complete(op, "b"); });
        a.join();
        b.join();
        ASSERT_EQ(listener->times(), 1);
    }
    EXPECT_EQ(faults("double_complete"), 200);
}

TEST_F(op_router_test, completing_a_refused_op_is_a_fault) {
    plugin_.run = [&](const gantry_request&, gantry_op op) {
        complete(op, "done");
        return GANTRY_BUSY;
    };
    auto listener = std::make_shared<recorder>();
    submit(listener);
    EXPECT_EQ(listener->wait(), "done");
    EXPECT_TRUE(eventually([&] { return faults("completed_refused_op") == 1; }));
}

TEST_F(op_router_test, ops_of_one_key_run_one_after_another) {
    std::vector<gantry_op> seen;
    plugin_.run = [&](const gantry_request&, gantry_op op) {
        seen.push_back(op);
        return GANTRY_OK;
    };
    auto first = std::make_shared<recorder>(), second = std::make_shared<recorder>(), third = std::make_shared<recorder>(),
         other = std::make_shared<recorder>();
    const auto a = submit(first, run_op, "pod"), b = submit(second, run_op, "pod"), c = submit(third, run_op, "pod"),
               d = submit(other, run_op, "another");
    settle();
    EXPECT_EQ(seen, (std::vector<gantry_op>{a, d}));
    router_->cancel(b); // one that waits for the key goes at once, and does not take the key with it
    EXPECT_EQ(second->wait(), "cancelled: net: run was cancelled: it waited for its turn");
    complete(a, "");
    first->wait();
    settle();
    EXPECT_EQ(seen, (std::vector<gantry_op>{a, d, c}));
    complete(c, "");
    complete(d, "");
    third->wait();
    other->wait();
    EXPECT_EQ(router_->totals().open, 0u);
}

TEST_F(op_router_test, keeps_to_the_concurrency_of_the_plugin) {
    make(2, 50ms);
    std::vector<gantry_op> seen;
    plugin_.run = [&](const gantry_request&, gantry_op op) {
        seen.push_back(op);
        return GANTRY_OK;
    };
    std::vector<std::shared_ptr<recorder>> listeners;
    std::vector<gantry_op> ops;
    for (int i = 0; i < 5; ++i) {
        listeners.push_back(std::make_shared<recorder>());
        ops.push_back(submit(listeners.back()));
    }
    auto watch = std::make_shared<recorder>(true);
    const auto endless = submit(watch, run_op, "", std::chrono::nanoseconds::max());
    settle();
    EXPECT_EQ(seen, (std::vector<gantry_op>{ops[0], ops[1], endless})) << "a watch takes no place";
    for (std::size_t i = 0; i < 5; ++i) {
        complete(ops[i], "");
        settle();
        EXPECT_EQ(seen.size(), std::min<std::size_t>(i + 4, 6));
    }
    router_->cancel_endless();
    complete(endless, "");
    EXPECT_TRUE(router_->wait_idle(clock::now() + 10s));
}

TEST_F(op_router_test, a_deadline_cancels_and_takes_the_plugins_answer) {
    plugin_.run = [&](const gantry_request&, gantry_op op) {
        router_->on_cancel(
            op,
            [](void* self, gantry_op op) {
                auto* test = static_cast<op_router_test*>(self);
                EXPECT_TRUE(test->lane_->on_lane());
                EXPECT_EQ(test->router_->is_cancelled(op), 1);
                test->fail(op, GANTRY_CANCELLED, "stopped waiting for the device");
            },
            this);
        return GANTRY_OK;
    };
    auto listener = std::make_shared<recorder>();
    submit(listener, run_op, "", 300ms);
    EXPECT_EQ(listener->wait(), "timeout: net: run did not finish within 300 ms: stopped waiting for the device");
    EXPECT_EQ(router_->totals().abandoned, 0u);
}

TEST_F(op_router_test, an_op_that_ignores_its_cancellation_is_abandoned) {
    std::atomic<gantry_op> kept{0};
    plugin_.run = [&](const gantry_request&, gantry_op op) {
        kept = op;
        return GANTRY_OK;
    };
    auto stuck = std::make_shared<recorder>(), next = std::make_shared<recorder>();
    submit(stuck, run_op, "pod", 300ms);
    submit(next, other_op, "pod");
    EXPECT_EQ(stuck->wait(), "timeout: net: run did not finish within 300 ms and ignored its cancellation for 50 ms: it was abandoned");
    EXPECT_EQ(faults("abandoned_op"), 1);
    EXPECT_EQ(router_->totals().abandoned, 1u);
    settle(); // its key was given on
    EXPECT_FALSE(next->done());
    EXPECT_EQ(router_->totals().open, 1u);
    complete(kept, "too late");
    EXPECT_EQ(faults("late_complete"), 1);
    EXPECT_EQ(stuck->times(), 1);
    router_->fail_all("the test ends");
    next->wait();
}

TEST_F(op_router_test, a_plugin_that_owes_too_much_gets_nothing_new) {
    make(2, 10ms);
    std::vector<gantry_op> owed;
    plugin_.run = [&](const gantry_request&, gantry_op op) {
        owed.push_back(op);
        return GANTRY_OK;
    };
    for (int i = 0; i < 2; ++i) {
        auto stuck = std::make_shared<recorder>();
        const auto op = submit(stuck);
        settle(); // it is open
        router_->cancel(op);
        stuck->wait();
    }
    auto refused = std::make_shared<recorder>();
    EXPECT_EQ(submit(refused), 0u);
    EXPECT_EQ(refused->wait(), "unavailable: net: run refused: 2 operations of this plugin were abandoned and have not come back");
    settle();
    complete(owed.at(0), "");
    auto taken = std::make_shared<recorder>();
    EXPECT_NE(submit(taken), 0u);
    router_->fail_all("the test ends");
    taken->wait();
}

TEST_F(op_router_test, fail_all_answers_everyone) {
    make(1, 50ms);
    auto open = std::make_shared<recorder>(), waiting = std::make_shared<recorder>();
    submit(open);
    submit(waiting);
    settle();
    router_->fail_all("its lane hangs");
    EXPECT_EQ(open->wait(), "timeout: net: run was given up: its lane hangs");
    EXPECT_EQ(waiting->wait(), "unavailable: net: run was not started: its lane hangs");
    EXPECT_TRUE(router_->wait_idle(clock::now()));
}

TEST_F(op_router_test, streams_items_until_the_listener_leaves) {
    std::atomic<gantry_op> opened{0};
    plugin_.run = [&](const gantry_request&, gantry_op op) {
        opened = op;
        return GANTRY_OK;
    };
    auto listener = std::make_shared<recorder>(true);
    const auto op = submit(listener, run_op, "", std::chrono::nanoseconds::max());
    settle();
    const gantry_reply one{.struct_size = sizeof one, .fd_count = 0, .fds = nullptr, .bytes = borrow("one"), .error = nullptr};
    EXPECT_EQ(router_->item(opened, &one), GANTRY_OK);
    EXPECT_EQ(router_->deadline_ns(op), INT64_MAX);
    router_->cancel(op);
    EXPECT_EQ(router_->item(opened, &one), GANTRY_CANCELLED);
    complete(op, "");
    EXPECT_EQ(listener->items(), std::vector<std::string>{"one"});
    auto unary = std::make_shared<recorder>();
    const auto second = submit(unary);
    settle();
    EXPECT_EQ(router_->item(second, &one), GANTRY_CANCELLED);
    EXPECT_EQ(faults("item_of_unary_op"), 1);
    complete(second, "");
}

TEST_F(op_router_test, errors_without_a_message_are_faults_and_get_one) {
    plugin_.run = [&](const gantry_request&, gantry_op op) {
        fail(op, 77, "");
        return GANTRY_OK;
    };
    auto listener = std::make_shared<recorder>();
    submit(listener);
    EXPECT_EQ(listener->wait(), "internal: net: run failed (internal) and gave no reason");
    settle();
    EXPECT_EQ(faults("error_without_message"), 1);
}

TEST_F(op_router_test, reads_no_byte_beyond_a_short_reply) {
    struct short_reply { // as an older header might have had it
        std::uint32_t struct_size, fd_count;
        const std::int32_t* fds;
    } reply{sizeof reply, 0, nullptr};
    plugin_.run = [&](const gantry_request&, gantry_op op) {
        router_->complete(op, reinterpret_cast<const gantry_reply*>(&reply));
        return GANTRY_OK;
    };
    auto listener = std::make_shared<recorder>();
    submit(listener);
    EXPECT_EQ(listener->wait(), "");
}

TEST_F(op_router_test, the_cancel_callback_never_runs_after_complete_has_returned) {
    for (int round = 0; round < 100; ++round) {
        struct context {
            std::atomic<bool> returned{false}, late{false};
        };
        auto state = std::make_shared<context>();
        std::promise<gantry_op> opened;
        plugin_.run = [&](const gantry_request&, gantry_op op) {
            router_->on_cancel(
                op,
                [](void* c, gantry_op) {
                    std::this_thread::sleep_for(100us);
                    if (static_cast<context*>(c)->returned) static_cast<context*>(c)->late = true;
                },
                state.get());
            opened.set_value(op);
            return GANTRY_OK;
        };
        auto listener = std::make_shared<recorder>();
        const auto op = submit(listener);
        opened.get_future().wait();
        std::thread canceller([&] { router_->cancel(op); });
        complete(op, "");
        state->returned = true;
        canceller.join();
        settle();
        ASSERT_FALSE(state->late);
    }
}

TEST_F(op_router_test, tells_the_journal_about_ops_of_pods) {
    plugin_.run = [&](const gantry_request&, gantry_op op) {
        router_->step(op, "veth made");
        fail(op, GANTRY_RESOURCE, "no address left");
        return GANTRY_OK;
    };
    auto listener = std::make_shared<recorder>();
    submit(listener, run_op, "", 60s, "uid-1");
    listener->wait();
    const auto steps = journal_.steps("uid-1");
    ASSERT_EQ(steps.size(), 1u);
    EXPECT_EQ(steps[0].plugin, "net");
    EXPECT_EQ(steps[0].op, "run");
    EXPECT_EQ(steps[0].message, "no address left");
    ASSERT_EQ(steps[0].steps.size(), 1u);
    EXPECT_EQ(steps[0].steps[0].name, "veth made");
}

TEST_F(op_router_test, counts_outcomes_by_op) {
    plugin_.run = [&](const gantry_request&, gantry_op op) {
        complete(op, "");
        return GANTRY_OK;
    };
    plugin_.other = [](const gantry_request&, gantry_op) { return GANTRY_PERMISSION; };
    for (const auto op : {run_op, run_op, other_op}) {
        auto listener = std::make_shared<recorder>();
        submit(listener, op);
        listener->wait();
    }
    for (const auto& m : router_->metrics()) {
        EXPECT_EQ(m.by_code[m.name == "run" ? GANTRY_OK : GANTRY_PERMISSION], m.name == "run" ? 2u : 1u);
        EXPECT_EQ(m.seconds.count(), m.name == "run" ? 2u : 1u);
        EXPECT_EQ(m.open, 0u);
    }
}

} // namespace
} // namespace gantry::core
