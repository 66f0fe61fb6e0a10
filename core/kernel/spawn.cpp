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

    std::list<std::shared_ptr<asio::cancellation_signal>> running;
    signal done;
};

task_group::task_group(asio::any_io_executor executor)
    : executor_(std::move(executor)), state_(std::make_shared<state>(executor_)) {}
task_group::~task_group() = default;

std::shared_ptr<asio::cancellation_signal> task_group::add(asio::awaitable<void> task) {
    auto s = state_;
    auto stop = std::make_shared<asio::cancellation_signal>();
    const auto self = s->running.insert(s->running.end(), stop);
    asio::co_spawn(executor_, quiet(std::move(task)),
                   asio::bind_cancellation_slot(stop->slot(), [s, self](std::exception_ptr failure) {
                       report(failure);
                       s->running.erase(self);
                       s->done.notify();
                   }));
    return stop;
}

std::size_t task_group::size() const { return state_->running.size(); }

void task_group::cancel() {
    // A task that ends at once leaves the list while it is walked.
    const auto all = state_->running;
    for (const auto& one : all) one->emit(asio::cancellation_type::terminal);
}

asio::awaitable<bool> task_group::join() {
    const auto s = state_;
    bool cancelled = false;
    while (!s->running.empty()) {
        if (co_await s->done.wait()) continue;
        cancelled = true;
        cancel();
        // A cancelled coroutine cannot wait any more: from here on the tasks' ends wake it.
        co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
    }
    co_return !cancelled;
}

} // namespace gantry::core
