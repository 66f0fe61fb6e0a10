// Operations: the three forms of a member function, and that each op is completed exactly once whatever happens.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/sdk/plugin_under_test.hpp"

namespace gantry::sdk_test {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// Bytes of the request choose what an op does.
class forms {
public:
    result<void> init(sdk::host& host) {
        host_ = &host;
        return {};
    }
    result<sdk::reply> blocking(const sdk::request& request, sdk::op& op) {
        if (request.bytes == "throw") throw std::runtime_error("thrown on purpose");
        if (request.bytes == "throw-int") throw 7;
        if (request.bytes == "fail")
            return error{.code = code::exists, .message = "it is there", .retryable = true, .detail = R"({"k":"v"})"};
        if (request.bytes == "empty-error") return error{.code = code::invalid};
        if (request.bytes == "twice") op.complete(sdk::reply{.bytes = "first"});
        if (request.bytes == "until-cancelled") {
            std::mutex mutex;
            std::condition_variable_any cancelled;
            std::unique_lock lock(mutex);
            cancelled.wait(lock, op.stop_token(), [] { return false; });
            return op.cancelled_error();
        }
        if (request.bytes == "deadline")
            return sdk::reply{.bytes = op.deadline() == sdk::time_point::max() ? "none" : "some"};
        if (request.bytes == "progress") {
            op.progress(1, 2, "layer");
            op.step("half");
        }
        if (request.bytes == "stream") {
            for (int i = 0;; ++i) GANTRY_CHECK(op.item({.bytes = std::to_string(i)}));
        }
        if (request.bytes == "fd") return read_and_answer(request);
        return sdk::reply{.bytes = request.key + '|' + request.bytes};
    }
    void manual(sdk::request request, sdk::op op) {
        if (request.bytes == "throw") throw std::runtime_error("thrown on purpose");
        if (request.bytes == "drop") return;
        if (request.bytes == "thread") {
            std::thread([op] { op.complete(sdk::reply{.bytes = "from a thread"}); }).join();
            return;
        }
        if (request.bytes == "throw-on-cancel")
            op.on_cancel([] { throw std::runtime_error("thrown by the cancel callback"); });
        kept_ = op;
        op.on_cancel([this] {
            kept_->complete(kept_->cancelled_error());
            kept_.reset();
        });
    }
    sdk::task<result<sdk::reply>> coroutine(sdk::request request, sdk::op) {
        if (request.bytes == "throw") throw std::runtime_error("thrown on purpose");
        if (request.bytes == "throw-later") {
            GANTRY_CO_CHECK(co_await host_->sleep(1ms));
            throw std::runtime_error("thrown on purpose");
        }
        if (request.bytes == "sleep") GANTRY_CO_CHECK(co_await host_->sleep(1h));
        co_return sdk::reply{.bytes = request.bytes};
    }
    static const void* capability(std::string_view id) {
        static constexpr auto network = sdk::capability<gantry_network>([](auto& table) {
            table.add = sdk::op_fn<&forms::blocking>;
            table.del = sdk::op_fn<&forms::manual>;
            table.check = sdk::op_fn<&forms::coroutine>;
        });
        return id == GANTRY_NETWORK ? &network : nullptr;
    }

private:
    static result<sdk::reply> read_and_answer(const sdk::request& request) {
        std::array<char, 16> text{};
        const auto n = ::read(request.fds.at(0).get(), text.data(), text.size());
        if (n < 0) return sys_error("read", errno);
        int ends[2];
        if (::pipe2(ends, O_CLOEXEC) != 0) return sys_error("pipe", errno);
        sdk::fd in(ends[0]), out(ends[1]);
        (void)!::write(out.get(), text.data(), static_cast<std::size_t>(n));
        sdk::reply reply;
        reply.fds.push_back(std::move(in));
        return reply;
    }

    sdk::host* host_ = nullptr;
    std::optional<sdk::op> kept_;
};

struct op_test : ::testing::Test, started<forms> {
    void SetUp() override { ASSERT_TRUE(begun.ok()) << begun.error.message; }
    gantry_op_fn blocking() const { return network->add; }
    gantry_op_fn manual() const { return network->del; }
    gantry_op_fn coroutine() const { return network->check; }
};

TEST_F(op_test, table_carries_its_size_and_only_what_was_set) {
    EXPECT_EQ(network->struct_size, sizeof(gantry_network));
    EXPECT_EQ(network->gc, nullptr);
    EXPECT_EQ(plugin.capability<void>("gantry.unknown/1"), nullptr);
}

TEST_F(op_test, blocking_form_gets_own_bytes_and_key) {
    const auto end = plugin.call(blocking(), {"bytes", {}, "key"});
    ASSERT_TRUE(end.ok()) << end.error.message;
    EXPECT_EQ(end.bytes, "key|bytes");
}

TEST_F(op_test, error_keeps_every_field) {
    const auto end = plugin.call(blocking(), {"fail"});
    EXPECT_EQ(end.error.code, GANTRY_EXISTS);
    EXPECT_EQ(end.error.message, "it is there");
    EXPECT_TRUE(end.error.retryable);
    EXPECT_EQ(end.error.detail, R"({"k":"v"})");
}

TEST_F(op_test, empty_error_message_becomes_one_that_says_so) {
    EXPECT_THAT(plugin.call(blocking(), {"empty-error"}).error.message, HasSubstr("without a message"));
    EXPECT_THAT(host.misbehaviour(), IsEmpty());
}

TEST_F(op_test, exception_in_every_form_becomes_internal_and_names_instance_and_function) {
    for (const auto& [fn, name] :
         {std::pair{blocking(), "forms::blocking"}, {manual(), "forms::manual"}, {coroutine(), "forms::coroutine"}}) {
        const auto end = plugin.call(fn, {"throw"});
        EXPECT_EQ(end.error.code, GANTRY_INTERNAL);
        EXPECT_THAT(end.error.message, HasSubstr(name));
        EXPECT_THAT(end.error.message, HasSubstr("\"test\""));
        EXPECT_THAT(end.error.message, HasSubstr("thrown on purpose"));
        EXPECT_TRUE(host.logged(std::string(name) + " threw thrown on purpose"));
    }
    EXPECT_EQ(plugin.call(coroutine(), {"throw-later"}).error.code, GANTRY_INTERNAL);
    EXPECT_THAT(plugin.call(blocking(), {"throw-int"}).error.message, HasSubstr("not a std::exception"));
    EXPECT_THAT(host.misbehaviour(), IsEmpty());
}

TEST_F(op_test, second_completion_is_logged_and_never_reaches_the_host) {
    const auto end = plugin.call(blocking(), {"twice"});
    EXPECT_EQ(end.bytes, "first");
    plugin.stop();
    EXPECT_TRUE(host.logged("completed a second time"));
    EXPECT_THAT(host.misbehaviour(), IsEmpty());
}

TEST_F(op_test, dropped_op_is_completed_with_an_error_that_names_the_function) {
    const auto end = plugin.call(manual(), {"drop"});
    EXPECT_EQ(end.error.code, GANTRY_INTERNAL);
    EXPECT_THAT(end.error.message, HasSubstr("forms::manual gave up the operation without completing it"));
}

TEST_F(op_test, manual_form_completes_from_any_thread) {
    EXPECT_EQ(plugin.call(manual(), {"thread"}).bytes, "from a thread");
}

TEST_F(op_test, cancel_reaches_every_form) {
    const std::pair<gantry_op_fn, const char*> waits[] = {
        {blocking(), "until-cancelled"}, {manual(), "keep"}, {coroutine(), "sleep"}};
    for (const auto& [fn, bytes] : waits) {
        const auto op = plugin.begin(fn, {bytes});
        EXPECT_FALSE(host.operations().completed(op)) << bytes;
        plugin.cancel(op);
        EXPECT_EQ(plugin.wait(op).error.code, GANTRY_CANCELLED) << bytes;
    }
    EXPECT_THAT(host.misbehaviour(), IsEmpty());
}

TEST_F(op_test, deadline_ends_every_form_as_timeout_or_cancelled) {
    EXPECT_EQ(plugin.call(blocking(), {"until-cancelled"}, 5ms).error.code, GANTRY_TIMEOUT);
    EXPECT_EQ(plugin.call(manual(), {"keep"}, 5ms).error.code, GANTRY_TIMEOUT);
    EXPECT_EQ(plugin.call(coroutine(), {"sleep"}, 5ms).error.code, GANTRY_CANCELLED);
}

TEST_F(op_test, deadline_is_told) {
    EXPECT_EQ(plugin.call(blocking(), {"deadline"}).bytes, "none");
    EXPECT_EQ(plugin.call(blocking(), {"deadline"}, 1min).bytes, "some");
}

TEST_F(op_test, exception_in_a_cancel_callback_is_caught_and_the_other_callback_still_runs) {
    const auto op = plugin.begin(manual(), {"throw-on-cancel"});
    plugin.cancel(op);
    EXPECT_EQ(plugin.wait(op).error.code, GANTRY_CANCELLED);
    host.lane().sync([] {}); // callbacks run in no fixed order: the other one may come after the completion
    EXPECT_TRUE(host.logged("thrown by the cancel callback"));
}

TEST_F(op_test, progress_and_steps_arrive) {
    const auto op = plugin.begin(blocking(), {"progress"});
    ASSERT_TRUE(plugin.wait(op).ok());
    const auto reports = host.operations().reports(op);
    ASSERT_EQ(reports.size(), 1u);
    EXPECT_EQ(reports[0].done, 1u);
    EXPECT_EQ(reports[0].total, 2u);
    EXPECT_EQ(reports[0].what, "layer");
    EXPECT_THAT(host.operations().steps(op), ElementsAre("half"));
}

TEST_F(op_test, stream_runs_until_cancelled_even_when_nobody_reads) {
    host.operations().most_items = 2;
    const auto op = plugin.begin(blocking(), {"stream"});
    fake::outcome item;
    for (const char* expected : {"0", "1", "2", "3"}) {
        ASSERT_TRUE(plugin.next_item(op, item));
        EXPECT_EQ(item.bytes, expected);
    }
    plugin.cancel(op);
    EXPECT_EQ(plugin.wait(op).error.code, GANTRY_CANCELLED);
    EXPECT_THAT(host.misbehaviour(), IsEmpty());
}

TEST_F(op_test, descriptors_are_the_ops_own_both_ways) {
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    const auto op = plugin.begin(blocking(), {"fd", {ends[0]}});
    ::close(ends[0]); // the op has its own
    ASSERT_EQ(::write(ends[1], "hello", 5), 5);
    ::close(ends[1]);
    const auto end = plugin.wait(op);
    ASSERT_TRUE(end.ok()) << end.error.message;
    ASSERT_EQ(end.fds.size(), 1u);
    EXPECT_NE(::fcntl(*end.fds[0], F_GETFD) & FD_CLOEXEC, 0);
    std::array<char, 16> text{};
    ASSERT_EQ(::read(*end.fds[0], text.data(), text.size()), 5);
    EXPECT_EQ(std::string(text.data()), "hello");
}

TEST_F(op_test, bad_descriptor_fails_the_op_and_says_which) {
    const auto end = plugin.call(blocking(), {"fd", {1000000}});
    EXPECT_EQ(end.error.sys_errno, EBADF);
    EXPECT_THAT(end.error.message, HasSubstr("1000000"));
}

TEST_F(op_test, full_executor_fails_the_op_as_busy) {
    host.refuse_work(true);
    const auto end = plugin.call(blocking(), {"x"});
    EXPECT_EQ(end.error.code, GANTRY_BUSY);
    EXPECT_TRUE(end.error.retryable);
    host.refuse_work(false);
    EXPECT_TRUE(plugin.call(blocking(), {"x"}).ok());
}

TEST_F(op_test, op_of_a_stopped_instance_is_not_taken) {
    plugin.stop();
    EXPECT_EQ(plugin.call(blocking(), {"x"}).error.code, GANTRY_UNAVAILABLE);
}

} // namespace
} // namespace gantry::sdk_test
