// One interface over cgroup v1 (pure and hybrid) and v2.
//
// A group is a path below the mount points ("/gantry-main/kubepods/pod1"), the same in every hierarchy. All calls may
// be repeated and work from any state a crash can leave. Nothing outside the named group is touched, but for ancestors
// made on the way and, on v2, the controllers enabled in them.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "base/unique_fd.hpp"
#include "gantry/sdk/result.hpp"
#include "plugins/common/cgroup/devices.hpp"
#include "plugins/common/cgroup/layout.hpp"
#include "plugins/common/cgroup/limits.hpp"
#include "plugins/common/cgroup/units.hpp"

namespace gantry::cgroup {

using time_point = std::chrono::steady_clock::time_point;

/// How a new process gets into a group without a write to cgroup.procs, which waits for every other fork of the
/// machine.
struct entrance {
    /// Directory for clone3(CLONE_INTO_CGROUP); -1 on pure v1.
    base::unique_fd unified;
    /// v1, one per hierarchy: `tasks` opened for writing. The single-threaded child writes "0" to each before it execs.
    std::vector<base::unique_fd> tasks;
};

struct usage {
    std::uint64_t cpu_ns = 0;
    std::uint64_t cpu_user_ns = 0;
    std::uint64_t cpu_system_ns = 0;
    std::uint64_t throttled_periods = 0;
    std::uint64_t throttled_ns = 0;
    std::uint64_t memory = 0;      ///< bytes, page cache included
    std::uint64_t working_set = 0; ///< memory without inactive file pages, as the kubelet evicts by
    std::uint64_t rss = 0;         ///< anonymous memory
    std::uint64_t memory_peak = 0; ///< 0 where the kernel does not keep it (v2 before 5.19)
    std::uint64_t swap = 0;
    std::uint64_t page_faults = 0;
    std::uint64_t major_page_faults = 0;
    std::uint64_t pids = 0;      ///< threads
    std::uint64_t oom_kills = 0; ///< processes of the group and of the groups below that exist now
};

/// Thread-safe: it holds only the layout.
class hierarchy {
public:
    /// Of the machine as mounted. [worker]
    static result<hierarchy> open();
    explicit hierarchy(cgroup::layout layout) : layout_(std::move(layout)) {}

    const cgroup::layout& layout() const { return layout_; }
    cgroup::version version() const { return layout_.version(); }

    /// The directory of a group: where `controller` is mounted, or on v2 the one there is. Empty when not mounted.
    std::string directory(const std::string& group, std::string_view controller) const;

    /// Makes the group and its missing ancestors in every hierarchy, then writes the limits. On v2 every ancestor gets
    /// the controllers enabled; when the calling process sits in the root of a cgroup namespace, that root's processes
    /// move to the leaf /gantry-self first (v2 allows no processes beside enabled controllers). [worker]
    result<void> create(const std::string& group, const limits& wanted) const;

    /// Writes limits to a group that exists. A memory limit below the present usage is refused with BUSY rather than
    /// answered by an OOM kill. [worker]
    result<void> apply(const std::string& group, const limits& wanted) const;

    /// [worker]
    result<void> set_devices(const std::string& group, const std::vector<device_rule>& rules) const;

    /// [any]
    result<entrance> open_entrance(const std::string& group) const;

    /// Puts a running process into the group; slow (see entrance), for adopted helpers. [worker]
    result<void> attach(const std::string& group, pid_t pid) const;

    bool exists(const std::string& group) const;
    /// Names of the groups right below this one. [worker]
    result<std::vector<std::string>> children(const std::string& group) const;
    /// Processes of the group and of all groups below. [worker]
    result<std::vector<pid_t>> processes(const std::string& group) const;

    /// Stops, or continues, every process of the group and below; returns when it is so. On failure or timeout a freeze
    /// is undone. [worker]
    result<void> freeze(const std::string& group, time_point deadline) const;
    result<void> thaw(const std::string& group) const;

    /// SIGKILLs every process of the group and below, also those that fork meanwhile and those that are frozen; does
    /// not wait for them. Success when there is no such group. [worker]
    result<void> kill_all(const std::string& group, time_point deadline) const;
    /// Waits until no process is left in the group and below. Success when there is no such group. [worker]
    result<void> wait_empty(const std::string& group, time_point deadline) const;
    /// Removes the empty group and all below in every hierarchy; BUSY when processes are in it past the deadline.
    /// [worker]
    result<void> remove(const std::string& group, time_point deadline) const;

    /// NOT_FOUND when there is no such group. [worker]
    result<cgroup::usage> usage(const std::string& group) const;
    /// OOM kills within the group alone (not below). [worker]
    result<std::uint64_t> oom_kills(const std::string& group) const;

private:
    cgroup::layout layout_;
};

} // namespace gantry::cgroup
