// Resource limits of one cgroup, and the control files they become.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "gantry/sdk/result.hpp"
#include "plugins/common/cgroup/layout.hpp"

namespace gantry::cgroup {

/// Absent members are left as they are. -1 (units.hpp: unlimited) lifts a limit.
struct limits {
    std::optional<std::uint64_t> cpu_shares{}; ///< v1 scale; becomes cpu.weight on v2
    std::optional<std::int64_t> cpu_quota_us{};
    std::optional<std::uint64_t> cpu_period_us{}; ///< with cpu_quota_us; the default is 100 ms
    std::optional<std::int64_t> memory_max{};     ///< bytes
    std::optional<std::int64_t> memory_high{};    ///< bytes; v2 only, without effect on v1
    std::optional<std::int64_t> memory_min{};     ///< bytes; v2 only, without effect on v1
    std::optional<std::int64_t> memory_low{};     ///< bytes; soft limit on v1
    std::optional<std::int64_t> swap_max{};       ///< bytes of swap alone; v1 needs memory_max beside it
    std::optional<std::int64_t> pids_max{};
    std::optional<std::string> cpuset_cpus{};      ///< "0-3,7"
    std::optional<std::string> cpuset_mems{};      ///< "0"
    std::map<std::string, std::int64_t> hugetlb{}; ///< page size as the kernel names it ("2MB") -> bytes
    std::optional<bool> oom_group{};               ///< an OOM kill takes the whole group; v2 only, without effect on v1
    std::map<std::string, std::string> unified{};  ///< raw v2 files ("memory.high" -> "1000"); an error on v1
};

/// One value for one control file.
struct control_write {
    std::string controller; ///< "memory"
    std::string file;       ///< "memory.max"
    std::string value;
    bool optional = false; ///< a kernel without this file is fine (swap accounting, rsvd, oom.group)
    bool operator==(const control_write&) const = default;
};

/// What limits mean in control files, in an order that is right for a new group. Pure. [any]
result<std::vector<control_write>> plan_writes(version v, const limits& wanted);

} // namespace gantry::cgroup
