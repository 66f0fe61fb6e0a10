#include "plugins/node-linux/capacity.hpp"

#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>

#include "base/files.hpp"
#include "plugins/common/cgroup/control_file.hpp"

namespace gantry::node_linux {

namespace {

std::int64_t without(std::int64_t whole, std::int64_t part) { return std::max<std::int64_t>(whole - part, 0); }

} // namespace

memory_info parse_meminfo(std::string_view text) {
    memory_info out;
    const std::pair<std::string_view, std::int64_t*> members[] = {
        {"MemTotal:", &out.total},     {"MemFree:", &out.free},         {"Inactive(file):", &out.inactive_file},
        {"Hugetlb:", &out.huge_pages}, {"SwapTotal:", &out.swap_total}, {"SwapFree:", &out.swap_free},
    };
    for (const auto line : cgroup::split(text, '\n')) {
        const auto words = cgroup::split(line, ' '); // "MemTotal:  123 kB"
        for (const auto& [key, target] : members)
            if (words.size() == 3 && words[0] == key)
                *target = static_cast<std::int64_t>(cgroup::to_number(words[1])) * 1024;
    }
    return out;
}

result<memory_info> read_memory() {
    GANTRY_TRY(const auto text, base::read_file("/proc/meminfo"));
    const auto info = parse_meminfo(text);
    if (info.total <= 0) return error{.code = code::internal, .message = "/proc/meminfo has no MemTotal"};
    return info;
}

result<std::int64_t> read_threads() {
    GANTRY_TRY(const auto text, base::read_file("/proc/loadavg"));
    const auto words = cgroup::split(text, ' '); // "0.00 0.01 0.05 1/234 5678"
    if (words.size() < 4) return error{.code = code::internal, .message = "/proc/loadavg has no thread count"};
    return static_cast<std::int64_t>(cgroup::to_number(words[3].substr(words[3].find('/') + 1)));
}

result<machine> read_machine(const std::string& state_dir) {
    GANTRY_TRY(const auto memory, read_memory());
    struct statvfs fs {};
    if (::statvfs(state_dir.c_str(), &fs) != 0) return sys_error("statvfs " + state_dir, errno);
    return machine{
        .cpu_milli = ::sysconf(_SC_NPROCESSORS_ONLN) * std::int64_t{1000},
        .memory = memory.total,
        .huge_pages = memory.huge_pages,
        .ephemeral_storage = static_cast<std::int64_t>(fs.f_blocks * fs.f_frsize),
        .pids = static_cast<std::int64_t>(std::min(cgroup::read_number("/proc/sys/kernel/pid_max"),
                                                   cgroup::read_number("/proc/sys/kernel/threads-max"))),
    };
}

capacity total(const machine& m, const config& settings) {
    std::int64_t pods = settings.max_pods;
    if (settings.pods_per_core > 0) pods = std::min(pods, settings.pods_per_core * (m.cpu_milli / 1000));
    return {.cpu_milli = m.cpu_milli, .memory = m.memory, .pods = pods, .ephemeral_storage = m.ephemeral_storage};
}

capacity allocatable(const machine& m, const config& settings) {
    capacity out = total(m, settings);
    const auto& reserved = settings.reserved;
    out.cpu_milli = without(out.cpu_milli, reserved.cpu_milli);
    out.memory = without(out.memory, reserved.memory + settings.memory_eviction.of(m.memory) + m.huge_pages);
    out.ephemeral_storage =
        without(out.ephemeral_storage, reserved.ephemeral_storage + settings.storage_eviction.of(m.ephemeral_storage));
    return out;
}

amounts enforced(const machine& m, const config& settings) {
    const auto& reserved = settings.reserved;
    return {.cpu_milli = without(m.cpu_milli, reserved.cpu_milli),
            .memory = without(m.memory, reserved.memory),
            .ephemeral_storage = without(m.ephemeral_storage, reserved.ephemeral_storage),
            .pids = reserved.pids > 0 ? without(m.pids, reserved.pids) : -1};
}

} // namespace gantry::node_linux
