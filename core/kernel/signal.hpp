// signal: wakes one waiting coroutine. A notification that nobody waits for is kept until somebody does.
#pragma once

#include <chrono>
#include <memory>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

namespace gantry::core {

/// Used from one executor only; at most one coroutine waits at a time.
class signal {
public:
    explicit signal(boost::asio::any_io_executor executor);
    ~signal();
    signal(signal&&) noexcept;
    signal& operator=(signal&&) noexcept;

    void notify();

    /// True once notified; false when the waiting coroutine was cancelled.
    boost::asio::awaitable<bool> wait();
    /// The same, but also returns (true) when `until` has come.
    boost::asio::awaitable<bool> wait_until(std::chrono::steady_clock::time_point until);

private:
    struct state;
    std::unique_ptr<state> state_;
};

} // namespace gantry::core
