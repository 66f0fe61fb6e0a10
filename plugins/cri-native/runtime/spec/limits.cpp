#include "plugins/cri-native/runtime/spec/limits.hpp"

#include <limits>
#include <string>

#include "plugins/common/cgroup/units.hpp"

namespace gantry::cri_native {

namespace {

error out_of_range(std::string_view field, std::int64_t value, std::string_view why) {
    return {.code = code::invalid,
            .message = std::string(field) + " " + std::to_string(value) + " " + std::string(why)};
}

} // namespace

result<cgroup::limits> cgroup_limits(const runtime::v1::LinuxContainerResources& resources) {
    cgroup::limits limits;
    if (resources.cpu_shares() < 0) return out_of_range("cpu_shares", resources.cpu_shares(), "is negative");
    if (resources.cpu_shares() > 0) limits.cpu_shares = static_cast<std::uint64_t>(resources.cpu_shares());
    if (resources.cpu_period() < 0) return out_of_range("cpu_period", resources.cpu_period(), "is negative");
    if (resources.cpu_quota() < -1)
        return out_of_range("cpu_quota", resources.cpu_quota(), "is neither positive nor -1");
    if (resources.cpu_period() > 0) limits.cpu_period_us = static_cast<std::uint64_t>(resources.cpu_period());
    if (resources.cpu_quota() != 0) limits.cpu_quota_us = resources.cpu_quota();

    const std::int64_t memory = resources.memory_limit_in_bytes();
    if (memory < -1) return out_of_range("memory_limit_in_bytes", memory, "is neither positive nor -1");
    if (memory > 0 && memory < lowest_memory_limit)
        return out_of_range("memory_limit_in_bytes", memory,
                            "is below " + std::to_string(lowest_memory_limit) +
                                ", the least a process needs to start; raise it");
    if (memory != 0) limits.memory_max = memory;
    const std::int64_t with_swap = resources.memory_swap_limit_in_bytes();
    if (with_swap < -1) return out_of_range("memory_swap_limit_in_bytes", with_swap, "is neither positive nor -1");
    if (with_swap == -1) {
        limits.swap_max = cgroup::unlimited;
    } else if (memory > 0) {
        if (with_swap != 0 && with_swap < memory)
            return out_of_range("memory_swap_limit_in_bytes", with_swap,
                                "counts memory too, so it cannot be below its limit");
        limits.swap_max = with_swap == 0 ? 0 : with_swap - memory;
    }

    if (!resources.cpuset_cpus().empty()) limits.cpuset_cpus = resources.cpuset_cpus();
    if (!resources.cpuset_mems().empty()) limits.cpuset_mems = resources.cpuset_mems();
    for (const auto& pages : resources.hugepage_limits()) {
        const auto most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
        limits.hugetlb[pages.page_size()] =
            pages.limit() > most ? cgroup::unlimited : static_cast<std::int64_t>(pages.limit());
    }
    for (const auto& [file, value] : resources.unified()) limits.unified[file] = value;
    return limits;
}

runtime::v1::LinuxContainerResources merged_resources(const runtime::v1::LinuxContainerResources& present,
                                                      const runtime::v1::LinuxContainerResources& update) {
    // MergeFrom skips scalars at their default, which is CRI's "leave it", but appends lists.
    auto merged = present;
    if (update.hugepage_limits_size() != 0) merged.clear_hugepage_limits();
    merged.MergeFrom(update);
    return merged;
}

} // namespace gantry::cri_native
