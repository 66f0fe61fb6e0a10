// Alarms on a thread of their own: deadlines fire although a lane hangs or the core loop is busy.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

namespace gantry::core {

class alarm_clock {
public:
    using time_point = std::chrono::steady_clock::time_point;

    alarm_clock();
    ~alarm_clock(); ///< alarms that are not due never run

    /// On return no alarm runs any more, and none ever will. [any but the clock's thread]
    void stop();

    /// Runs fn at `when`, on the clock's thread: it must be short. Returns a handle > 0. [any]
    std::uint64_t set(time_point when, std::function<void()> fn);
    /// The alarm will not run, unless it runs already. Handle 0 and old handles are fine. [any]
    void cancel(std::uint64_t handle);

private:
    using key = std::pair<time_point, std::uint64_t>;
    void run();

    std::mutex mutex_;
    std::condition_variable changed_;
    std::map<key, std::function<void()>> alarms_;
    std::map<std::uint64_t, time_point> times_;
    std::uint64_t next_ = 1;
    bool stopping_ = false;
    std::thread thread_;
};

} // namespace gantry::core
