// File work away from the core loop.
#pragma once

#include <functional>
#include <memory>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

namespace gantry::core {

/// One thread that runs jobs in order; the waiting coroutine resumes on its own executor.
class file_worker {
public:
    explicit file_worker(boost::asio::any_io_executor loop);
    /// Finishes what is queued.
    ~file_worker();
    file_worker(const file_worker&) = delete;
    file_worker& operator=(const file_worker&) = delete;

    /// job must not throw. It may use locals of the waiting coroutine.
    boost::asio::awaitable<void> run(std::function<void()> job);
    /// The same without waiting.
    void post(std::function<void()> job);

private:
    struct impl;
    std::unique_ptr<impl> impl_;
};

} // namespace gantry::core
