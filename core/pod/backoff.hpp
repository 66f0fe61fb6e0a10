// Back-off of restarts and image pulls: the first try is free, then 10 s doubling to 300 s.
#pragma once

#include <chrono>
#include <cstdint>

#include "base/time.hpp"

namespace gantry::core {

struct backoff_policy {
    std::chrono::milliseconds base{10'000};
    std::chrono::milliseconds limit{300'000};
    std::chrono::milliseconds reset{600'000}; ///< an event later than this after the last step starts anew
};

/// One key's state. The key holds everything whose change starts anew (image, resources).
struct backoff {
    std::uint64_t key = 0;
    std::chrono::milliseconds delay{0}; ///< 0: no failure yet
    base::wall_time last_step{};

    /// When the next try after an event (exit, failed pull) may run; `event` itself when it may run at once.
    base::wall_time next_try(std::uint64_t for_key, base::wall_time event, const backoff_policy& policy = {}) const;
    /// Notes a try that follows an event.
    void step(std::uint64_t for_key, base::wall_time event, base::wall_time now, const backoff_policy& policy = {});

    friend bool operator==(const backoff&, const backoff&) = default;
};

} // namespace gantry::core
