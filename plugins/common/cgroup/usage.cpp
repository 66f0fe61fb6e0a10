// What a group has used.
#include <algorithm>

#include "plugins/common/cgroup/cgroup.hpp"
#include "plugins/common/cgroup/control_file.hpp"
#include "plugins/common/cgroup/mounts.hpp"

namespace gantry::cgroup {

namespace {

constexpr std::uint64_t ns_per_us = 1000;

std::string text_of(const std::string& path) {
    auto text = read_control(path);
    return text ? *std::move(text) : std::string();
}

std::uint64_t without(std::uint64_t whole, std::uint64_t part) { return whole > part ? whole - part : 0; }

usage usage_v2(const std::string& directory) {
    usage out;
    const std::string cpu = text_of(directory + "/cpu.stat");
    out.cpu_ns = number_of(cpu, "usage_usec") * ns_per_us;
    out.cpu_user_ns = number_of(cpu, "user_usec") * ns_per_us;
    out.cpu_system_ns = number_of(cpu, "system_usec") * ns_per_us;
    out.throttled_periods = number_of(cpu, "nr_throttled");
    out.throttled_ns = number_of(cpu, "throttled_usec") * ns_per_us;
    const std::string memory = text_of(directory + "/memory.stat");
    out.memory = read_number(directory + "/memory.current");
    out.working_set = without(out.memory, number_of(memory, "inactive_file"));
    out.rss = number_of(memory, "anon");
    out.page_faults = number_of(memory, "pgfault");
    out.major_page_faults = number_of(memory, "pgmajfault");
    out.memory_peak = read_number(directory + "/memory.peak");
    out.swap = read_number(directory + "/memory.swap.current");
    out.pids = read_number(directory + "/pids.current");
    out.oom_kills = number_of(text_of(directory + "/memory.events"), "oom_kill");
    return out;
}

/// v1 counts kills where the victim was, not above: a pod's are its containers'.
std::uint64_t oom_kills_below(const std::string& directory) {
    std::uint64_t sum = number_of(text_of(directory + "/memory.oom_control"), "oom_kill");
    if (const auto names = subgroups(directory))
        for (const auto& name : *names) sum += oom_kills_below(directory + "/" + name);
    return sum;
}

usage usage_v1(const hierarchy& h, const std::string& group) {
    usage out;
    const std::string account = h.directory(group, "cpuacct");
    out.cpu_ns = read_number(account + "/cpuacct.usage");
    out.cpu_user_ns = read_number(account + "/cpuacct.usage_user");
    out.cpu_system_ns = read_number(account + "/cpuacct.usage_sys");
    const std::string cpu = text_of(h.directory(group, "cpu") + "/cpu.stat");
    out.throttled_periods = number_of(cpu, "nr_throttled");
    out.throttled_ns = number_of(cpu, "throttled_time");
    const std::string directory = h.directory(group, "memory");
    const std::string memory = text_of(directory + "/memory.stat");
    out.memory = read_number(directory + "/memory.usage_in_bytes");
    out.working_set = without(out.memory, number_of(memory, "total_inactive_file"));
    out.rss = number_of(memory, "total_rss");
    out.page_faults = number_of(memory, "total_pgfault");
    out.major_page_faults = number_of(memory, "total_pgmajfault");
    out.memory_peak = read_number(directory + "/memory.max_usage_in_bytes");
    out.swap = number_of(memory, "total_swap");
    out.pids = read_number(h.directory(group, "pids") + "/pids.current");
    out.oom_kills = oom_kills_below(directory);
    return out;
}

} // namespace

result<usage> hierarchy::usage(const std::string& group) const {
    if (!exists(group)) return error{.code = code::not_found, .message = "no cgroup " + group};
    return version() == version::v2 ? usage_v2(layout_.unified + group) : usage_v1(*this, group);
}

result<std::uint64_t> hierarchy::oom_kills(const std::string& group) const {
    const std::string base = directory(group, "memory");
    const std::string v2_local = base + "/memory.events.local";
    GANTRY_TRY(const auto text, read_control(version() == version::v2 ? v2_local : base + "/memory.oom_control"));
    return number_of(text, "oom_kill");
}

} // namespace gantry::cgroup
