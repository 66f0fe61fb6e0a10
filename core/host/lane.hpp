// A lane: the one thread on which an instance's code runs, one piece at a time. Tasks, timers and file descriptors all
// meet here. Nobody but the plugin may block it; a watchdog reads busy_since() from outside.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "gantry/abi/host.h"
#include "gantry/sdk/result.hpp"

namespace gantry::core {

class lane {
public:
    using task = std::function<void()>;
    using clock = std::chrono::steady_clock;

    /// `name` shows as the thread's name. Fails when the kernel has no more file descriptors.
    static result<std::unique_ptr<lane>> start(const std::string& name);
    /// After finish() the thread has ended; without it the thread is left to itself (it hangs in a plugin).
    ~lane();

    /// Runs the task after what is queued. Ignored after finish(). [any]
    void post(task task);
    /// Runs once, not before `delay` has passed. Returns a handle > 0. [any]
    std::uint64_t after(std::chrono::nanoseconds delay, task task);
    /// True when the timer will not run; on the lane that is certain. [any]
    bool cancel(std::uint64_t timer);
    /// Level-triggered epoll(7) events of fd, until unwatch. Returns a handle > 0, or 0 with errno set. [any]
    std::uint64_t watch(int fd, std::uint32_t events, std::function<void(std::uint32_t events)> fn);
    /// From the lane: fn will not run again. From elsewhere it may be running. [any]
    void unwatch(std::uint64_t handle);
    /// Drops every timer and watch. [lane]
    void revoke();

    bool on_lane() const noexcept;
    /// What the lane does, for whoever finds it busy; an interned name. set_label: [lane], label: [any]
    void set_label(const char* what) noexcept { label_.store(what, std::memory_order_relaxed); }
    const char* label() const noexcept { return label_.load(std::memory_order_relaxed); }
    /// Since when the piece of code that runs now has been running; nothing while the lane waits. [any]
    clock::duration busy_for(clock::time_point now) const noexcept;
    /// Ends the thread once it is idle; false if it does not come to an end until the deadline. [any but the lane]
    bool finish(clock::time_point deadline);

private:
    class state;
    explicit lane(std::shared_ptr<state> state) : state_(std::move(state)) {}
    std::atomic<const char*> label_{"start"};
    std::shared_ptr<state> state_; ///< shared with the thread, which may outlive this object
};

} // namespace gantry::core
