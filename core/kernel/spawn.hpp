// Starting coroutines that report failures as results: Asio's exceptions on cancellation are switched off in them.
#pragma once

#include <cstddef>
#include <memory>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/cancellation_signal.hpp>

#include "core/kernel/signal.hpp"

namespace gantry::core {

/// Runs the task inside the calling coroutine, but with a cancellation of its own instead of the caller's.
boost::asio::awaitable<void> run_cancellable(boost::asio::awaitable<void> task, boost::asio::cancellation_signal& stop);

/// True once this coroutine was cancelled.
boost::asio::awaitable<bool> is_cancelled();

/// Coroutines that are waited for together.
class task_group {
public:
    explicit task_group(boost::asio::any_io_executor executor);
    ~task_group();
    task_group(const task_group&) = delete;
    task_group& operator=(const task_group&) = delete;

    /// The result cancels this one task.
    std::shared_ptr<boost::asio::cancellation_signal> add(boost::asio::awaitable<void> task);
    std::size_t size() const;
    /// Cancels every task that still runs.
    void cancel();
    /// Returns when none runs any more. When the waiting coroutine is cancelled, so are the tasks: they are still waited
    /// for, and the answer is false. The coroutine's own cancellation is used up by that.
    boost::asio::awaitable<bool> join();

private:
    struct state;
    boost::asio::any_io_executor executor_;
    std::shared_ptr<state> state_;
};

} // namespace gantry::core
