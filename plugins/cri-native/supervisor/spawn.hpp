// Making children: clone3 with its fallbacks, in the right PID namespace.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace gantry::cri_native::supervisor {

struct clone_request {
    std::uint64_t namespaces = 0; ///< CLONE_NEW*
    int pid_namespace_of = -1;    ///< pidfd whose PID namespace the child is born in; -1 for ours
    int cgroup = -1;              ///< v2 directory to be born in; -1 for none
};

struct clone_result {
    pid_t pid = -1;         ///< 0 in the child, -1 on failure (errno)
    int pidfd = -1;         ///< parent only
    bool in_cgroup = false; ///< false: the child must join `cgroup` itself
};

/// Remembers the supervisor's own PID namespace; before the first clone_child.
bool remember_pid_namespace() noexcept;
/// Like fork, with a copy of our memory.
clone_result clone_child(const clone_request& request) noexcept;

/// Closes a descriptor whose last close takes long: in a child that does nothing else.
void close_aside(int fd) noexcept;

} // namespace gantry::cri_native::supervisor
