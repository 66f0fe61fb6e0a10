// Kubernetes' CPU and memory figures in the kernel's units. One function for each conversion: what two callers compute
// differently ends as a child that asks for more than its parent has.
#pragma once

#include <cstdint>

namespace gantry::cgroup {

/// Where a figure has no limit, in every signed field of this library.
constexpr std::int64_t unlimited = -1;

constexpr std::uint64_t default_period_us = 100'000;

/// CPU shares of a request in milliCPU: 1024 a CPU, within the kernel's [2, 262144]; 0 or less gives 2.
std::uint64_t shares_of_milli(std::int64_t milli_cpu);

/// cgroup v2 weight [1, 10000] of v1 shares, linear as the kubelet has it (KEP-2254).
std::uint64_t weight_of_shares(std::uint64_t shares);

/// A request in milliCPU that has this weight: the middle of those that do.
std::int64_t milli_of_weight(std::uint64_t weight);

/// CFS quota in microseconds per period of a limit in milliCPU: rounded down, at least 1000; 0 or less is unlimited.
std::int64_t quota_of_milli(std::int64_t milli_cpu, std::uint64_t period_us = default_period_us);

/// oom_score_adj as the kubelet gives it to a Burstable container: 1000 - 1000 * request / capacity within [3, 999].
int burstable_oom_score(std::int64_t memory_request, std::int64_t memory_capacity);

} // namespace gantry::cgroup
