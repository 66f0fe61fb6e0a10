// Starts a helper program without fork: the child shares our memory until it has called execve (clone(2), CLONE_VFORK), so
// no lock of another thread is left behind in it and no page is copied.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/unique_fd.hpp"
#include "gantry/sdk/result.hpp"

namespace gantry::core {

struct helper_program {
    std::vector<std::string> argv{}; ///< argv[0] is an absolute path
    std::vector<std::string> envp{}; ///< all of its environment
    std::vector<int> fds{};          ///< become 0, 1, 2, ...; -1 and missing ones up to 2 are /dev/null
    int join_fd = -1;                ///< cgroup.procs of the cgroup it shall live in, -1 for ours
};

struct helper_process {
    pid_t pid = 0;
    base::unique_fd pidfd{};
};

/// The child leads a session of its own, works in /, has default signal handling and no other descriptors. Fails with the
/// errno of the step that failed in the child. Returns after its execve. [any]
result<helper_process> spawn_helper(const helper_program& program);

} // namespace gantry::core
