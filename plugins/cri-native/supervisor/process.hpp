// The last steps before execve, the same for a container's first process and for exec (3.2 steps 7, 12 to 14).
#pragma once

#include "plugins/cri-native/supervisor/child.hpp"
#include "plugins/cri-native/supervisor/process_record.hpp"

namespace gantry::cri_native::supervisor {

/// While the host's /proc is in sight: oom_score_adj, and a session keyring of the process's own.
void prepare_process(const child& c, const process_record& process) noexcept;
/// Leaves only stdio and the status socket (moved to 3) open. (CVE-2024-21626.)
void close_descriptors(child& c) noexcept;
/// Working directory, limits, identity, privileges, filter, program. In the container's root; does not return.
[[noreturn]] void become_process(const child& c, const process_record& process) noexcept;

} // namespace gantry::cri_native::supervisor
