#include "core/host/alarm_clock.hpp"

#include "core/host/threads.hpp"

namespace gantry::core {

alarm_clock::alarm_clock() : thread_(start_thread("clock", [this] { run(); })) {}

alarm_clock::~alarm_clock() { stop(); }

void alarm_clock::stop() {
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
}

std::uint64_t alarm_clock::set(time_point when, std::function<void()> fn) {
    bool earliest = false;
    std::uint64_t handle = 0;
    {
        const std::lock_guard lock(mutex_);
        handle = next_++;
        const auto at = alarms_.emplace(key{when, handle}, std::move(fn)).first;
        times_.emplace(handle, when);
        earliest = at == alarms_.begin();
    }
    if (earliest) changed_.notify_all();
    return handle;
}

void alarm_clock::cancel(std::uint64_t handle) {
    const std::lock_guard lock(mutex_);
    const auto found = times_.find(handle);
    if (found == times_.end()) return;
    alarms_.erase({found->second, handle}); // a waiter that wakes for nothing finds the next one
    times_.erase(found);
}

void alarm_clock::run() {
    std::unique_lock lock(mutex_);
    while (!stopping_) {
        if (alarms_.empty()) {
            changed_.wait(lock);
            continue;
        }
        const auto first = alarms_.begin();
        if (std::chrono::steady_clock::now() < first->first.first) {
            const auto until = first->first.first;
            changed_.wait_until(lock, until);
            continue;
        }
        const auto fn = std::move(first->second);
        times_.erase(first->first.second);
        alarms_.erase(first);
        lock.unlock();
        fn();
        lock.lock();
    }
}

} // namespace gantry::core
