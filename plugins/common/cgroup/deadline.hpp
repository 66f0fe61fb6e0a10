// Deadlines for poll(2) and for conditions the kernel gives no event for.
#pragma once

#include <algorithm>
#include <chrono>
#include <thread>

namespace gantry::cgroup {

/// What is left, for poll(2): rounded up, 0 when the deadline has passed.
inline int milliseconds_until(std::chrono::steady_clock::time_point deadline) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    return static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 3'600'000));
}

/// Paces a loop over a condition that v1 signals nowhere: waits 0.2 ms, then twice as long each time up to 10 ms.
class pace {
public:
    explicit pace(std::chrono::steady_clock::time_point deadline) : deadline_(deadline) {}
    /// False once the deadline has passed.
    bool wait() {
        if (std::chrono::steady_clock::now() >= deadline_) return false;
        std::this_thread::sleep_for(step_);
        step_ = std::min(step_ * 2, std::chrono::microseconds(10'000));
        return true;
    }

private:
    std::chrono::steady_clock::time_point deadline_;
    std::chrono::microseconds step_{200};
};

} // namespace gantry::cgroup
