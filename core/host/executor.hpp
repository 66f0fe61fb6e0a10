// Worker threads of one instance, for its blocking work: made when needed, up to its concurrency limit, gone when idle. A
// task that never returns costs a thread of its own plugin, nobody else's.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "gantry/sdk/result.hpp"

namespace gantry::core {

class executor {
public:
    using task = std::function<void()>;
    static constexpr std::size_t most_queued = 4096;

    executor(std::string thread_name, std::size_t most_threads);
    /// Idle threads end; threads that hang in a task are left to themselves.
    ~executor();

    /// code::busy past most_queued tasks, code::unavailable after finish(), code::resource when no thread can be made. [any]
    code submit(task task);
    /// Drops what is queued and waits for the running tasks; false if some do not end until the deadline. [any]
    bool finish(std::chrono::steady_clock::time_point deadline);
    /// Takes tasks again after finish(). [any]
    void reopen();

private:
    class state;
    std::shared_ptr<state> state_; ///< shared with the threads, which may outlive this object
};

} // namespace gantry::core
