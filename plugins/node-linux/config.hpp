// The plugin's config, as validated JSON of the descriptor's schema.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "gantry/sdk/result.hpp"

namespace gantry::node_linux {

/// An amount that is fixed or a share of the capacity ("10%").
struct threshold {
    std::int64_t bytes = 0;
    double percent = 0; ///< used when above 0
    std::int64_t of(std::int64_t capacity) const;
};

struct amounts {
    std::int64_t cpu_milli = 0;
    std::int64_t memory = 0;            ///< bytes
    std::int64_t ephemeral_storage = 0; ///< bytes
    std::int64_t pids = 0;
};

struct config {
    std::string cgroup_root = ""; ///< "" or "/name": below every hierarchy's mount point
    amounts reserved;             ///< systemReserved and kubeReserved together
    threshold memory_eviction{.bytes = 100 << 20};
    threshold storage_eviction{.percent = 10};
    std::int64_t max_pods = 110;
    std::int64_t pods_per_core = 0;   ///< 0: no such bound
    std::int64_t pod_pids_limit = -1; ///< -1: unlimited
    bool cpu_quota = true;
    std::uint64_t cpu_period_us = 100'000;
    bool enforce_allocatable = true;
};

/// The error names the member and its value. Pure. [any]
result<config> parse_config(std::string_view json);

} // namespace gantry::node_linux
