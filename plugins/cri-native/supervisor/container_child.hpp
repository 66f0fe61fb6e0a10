// The child that becomes a container's first process, and the one that joins a container for exec.
#pragma once

#include "plugins/cri-native/supervisor/child.hpp"

namespace gantry::cri_native::supervisor {

/// What becomes stdin, stdout and stderr; -1 for /dev/null. Ignored with a terminal.
struct stdio_ends {
    int in = -1;
    int out = -1;
    int err = -1;
};

/// Follows launcher.md 3.2 in order, marking its steps. `in_v2`: clone3 has put the child into its v2 cgroup already.
[[noreturn]] void run_container(child& c, const stdio_ends& io, bool in_v2) noexcept;

struct exec_target {
    int pidfd = -1;                     ///< the container's first process
    const plan_view* cgroups = nullptr; ///< its cgroup records
    text leaf{};                        ///< directory of the exec's own cgroup, empty for none
    bool leaf_is_v2 = false;
    bool in_v2 = false;
};

[[noreturn]] void run_exec(child& c, const exec_target& target, const stdio_ends& io) noexcept;

} // namespace gantry::cri_native::supervisor
