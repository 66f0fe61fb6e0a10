// Amounts of a pod: QoS class, sums, and the values of its cgroups.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "gantry/model/pod.hpp"

namespace gantry::core {

/// "Guaranteed", "Burstable" or "BestEffort". Looks at cpu and memory only.
std::string qos_class(const model::pod_spec& spec);

/// What the pod holds at most at any time: regular containers and sidecars together, or an init container with the
/// sidecars before it, whichever is more; plus overhead. Pod-level amounts win.
model::resource_list pod_requests(const model::pod_spec& spec);
model::resource_list pod_limits(const model::pod_spec& spec);

/// Values for resources.ensure_pod; nothing: unlimited.
struct pod_cgroup_values {
    std::int64_t cpu_request_milli = 0;
    std::optional<std::int64_t> cpu_limit_milli{};
    std::int64_t memory_request = 0;
    std::optional<std::int64_t> memory_limit{};
};
pod_cgroup_values pod_cgroup(const model::pod_spec& spec);

inline constexpr std::int64_t cpu_period_us = 100'000;
/// Relative weight, 2 to 262144.
std::int64_t cpu_shares(std::int64_t milli);
/// Microseconds per period, at least 1000; 0: unlimited.
std::int64_t cpu_quota(std::int64_t milli);

/// oom_score_adj of a container. memory_capacity: bytes of this node.
std::int64_t oom_score_adj(const model::pod_spec& spec, const model::container& c, std::int64_t memory_capacity);

/// Amount of a resource in a list, zero if it is not there.
model::quantity amount(const model::resource_list& list, const std::string& name);

} // namespace gantry::core
