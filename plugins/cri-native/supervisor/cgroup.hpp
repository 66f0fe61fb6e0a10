// Cgroups as the supervisor needs them: join one, kill all in one, read its OOM counter. Directories and limits are
// made by the plugin; only an exec's leaf is made here.
#pragma once

#include <sys/types.h>

#include "plugins/cri-native/supervisor/sys.hpp"
#include "plugins/cri-native/supervisor/text.hpp"

namespace gantry::cri_native::supervisor {

/// Moves this process, which has one thread, into the directory's cgroup: 0 to `tasks` (v1: no RCU wait, unlike
/// cgroup.procs) or to `cgroup.procs` (v2).
bool join_cgroup_v1(text dir) noexcept;
bool join_cgroup_v2(text dir) noexcept;

/// SIGKILLs every process in the directory's cgroup so that none can escape by forking: cgroup.kill (v2, 5.14), or
/// frozen first (v1 freezer), or in rounds. Leaves it thawed. The dying may still be listed on return.
void kill_cgroup(text dir) noexcept;

/// Whether a freezer (v1) or cgroup (v2) directory is frozen, itself or by an ancestor.
bool is_frozen(text dir) noexcept;

/// oom_kill count of memory.events or memory.oom_control; 0 where the file is empty or gone.
std::uint64_t oom_kills(text file) noexcept;

} // namespace gantry::cri_native::supervisor
