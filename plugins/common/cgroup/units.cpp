#include "plugins/common/cgroup/units.hpp"

#include <algorithm>

namespace gantry::cgroup {

namespace {

constexpr std::uint64_t shares_min = 2;
constexpr std::uint64_t shares_max = 262'144;
constexpr std::uint64_t weight_max = 10'000;
constexpr std::int64_t quota_min_us = 1000; // the kernel refuses less

__extension__ typedef unsigned __int128 wide;

/// value * factor / divisor without overflow in between; at least 0.
std::uint64_t scale(std::int64_t value, std::uint64_t factor, std::uint64_t divisor) {
    if (value <= 0) return 0;
    const wide scaled = static_cast<wide>(value) * factor / divisor;
    return static_cast<std::uint64_t>(std::min<wide>(scaled, INT64_MAX));
}

} // namespace

std::uint64_t shares_of_milli(std::int64_t milli_cpu) {
    return std::clamp(scale(milli_cpu, 1024, 1000), shares_min, shares_max);
}

std::uint64_t weight_of_shares(std::uint64_t shares) {
    const std::uint64_t above = std::clamp(shares, shares_min, shares_max) - shares_min;
    return 1 + above * (weight_max - 1) / (shares_max - shares_min);
}

std::int64_t milli_of_weight(std::uint64_t weight) {
    const std::uint64_t above = std::clamp<std::uint64_t>(weight, 1, weight_max) - 1;
    const std::uint64_t step = (shares_max - shares_min) / (weight_max - 1);
    const std::uint64_t shares =
        above == 0 ? 0 : shares_min + above * (shares_max - shares_min) / (weight_max - 1) + step / 2;
    return static_cast<std::int64_t>(shares * 1000 / 1024);
}

std::int64_t quota_of_milli(std::int64_t milli_cpu, std::uint64_t period_us) {
    if (milli_cpu <= 0) return unlimited;
    return std::max(static_cast<std::int64_t>(scale(milli_cpu, period_us, 1000)), quota_min_us);
}

int burstable_oom_score(std::int64_t memory_request, std::int64_t memory_capacity) {
    if (memory_capacity <= 0) return 999;
    const auto protected_by_request =
        static_cast<std::int64_t>(scale(memory_request, 1000, static_cast<std::uint64_t>(memory_capacity)));
    return static_cast<int>(std::clamp<std::int64_t>(1000 - protected_by_request, 3, 999));
}

} // namespace gantry::cgroup
