#include "core/kernel/spawn.hpp"

#include <exception>
#include <list>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "core/log/log.hpp"

namespace gantry::core {

namespace asio = boost::asio;

namespace {

asio::awaitable<void> quiet(asio::awaitable<void> task) {
    co_await asio::this_coro::throw_if_cancelled(false);
    co_await asio::this_coro::reset_cancellation_state(asio::enable_total_cancellation());
    co_await std::move(task);
}

void report(std::exception_ptr failure) {
    if (!failure) return;
    try {
        std::rethrow_exception(failure);
    } catch (const std::exception& e) {
        log::error("a task of the kernel ended with an exception", {{"error", e.what()}});
    }
}

} // namespace

void spawn(const asio::any_io_executor& executor, asio::awaitable<void> task, asio::cancellation_slot slot) {
    asio::co_spawn(executor, quiet(std::move(task)), asio::bind_cancellation_slot(slot, report));
}

asio::awaitable<void> run_cancellable(asio::awaitable<void> task, asio::cancellation_signal& stop) {
    const auto executor = co_await asio::this_coro::executor;
    co_await asio::co_spawn(executor, quiet(std::move(task)),
                            asio::bind_cancellation_slot(stop.slot(), asio::use_awaitable));
}

asio::awaitable<bool> is_cancelled() {
    const auto state = co_await asio::this_coro::cancellation_state;
    co_return state.cancelled() != asio::cancellation_type::none;
}

struct task_group::state {
    explicit state(asio::any_io_executor executor) : done(std::move(executor)) {}

    std::list<asio::cancellation_signal> running;
    signal done;
};

task_group::task_group(asio::any_io_executor executor)
    : executor_(std::move(executor)), state_(std::make_shared<state>(executor_)) {}
task_group::~task_group() = default;

void task_group::add(asio::awaitable<void> task) {
    auto s = state_;
    const auto self = s->running.emplace(s->running.end());
    asio::co_spawn(executor_, quiet(std::move(task)),
                   asio::bind_cancellation_slot(self->slot(), [s, self](std::exception_ptr failure) {
                       report(failure);
                       s->running.erase(self);
                       s->done.notify();
                   }));
}

std::size_t task_group::size() const { return state_->running.size(); }

void task_group::cancel() {
    // A task that ends at once leaves the list while it is walked.
    for (auto it = state_->running.begin(); it != state_->running.end();) {
        auto& one = *it++;
        one.emit(asio::cancellation_type::terminal);
    }
}

asio::awaitable<void> task_group::join() {
    const auto s = state_;
    while (!s->running.empty()) {
        if (co_await s->done.wait()) continue;
        cancel();
        // This coroutine is cancelled for good, so its own waits return at once: let the tasks' completions wake it.
        co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
    }
}

} // namespace gantry::core
