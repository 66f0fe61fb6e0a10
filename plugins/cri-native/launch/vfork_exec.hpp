// A child that borrows our memory until it execs, born in a cgroup: posix_spawn cannot name one, and a write to
// cgroup.procs waits for RCU (8 to 15 ms).
#pragma once

#include <sys/types.h>

#include <vector>

#include "base/unique_fd.hpp"
#include "gantry/sdk/result.hpp"

namespace gantry::cri_native::launch {

/// What the child becomes: a session leader with every signal at its default and none blocked.
struct program {
    const char* path;
    char* const* argv;
    char* const* environment;
    /// Source of each descriptor from 0 on; nothing else stays open. Every source is above the last target.
    std::vector<int> descriptors{};
};

struct spawned {
    pid_t pid = -1;
    base::unique_fd pidfd{}; ///< empty where the kernel has no CLONE_PIDFD
};

/// Starts the program; returns when it runs, or the errno of what failed. `cgroup` is a cgroup v2 directory, -1 for ours;
/// where the kernel refuses to let a child be born there: code::unsupported. The caller reaps it by pid.
/// [any, blocks until the exec]
result<spawned> vfork_exec(const program& what, int cgroup);

} // namespace gantry::cri_native::launch
