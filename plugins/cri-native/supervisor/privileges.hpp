// Identity and privileges (3.2 step 13).
#pragma once

#include "plugins/cri-native/supervisor/child.hpp"
#include "plugins/cri-native/supervisor/process_record.hpp"

namespace gantry::cri_native::supervisor {

/// Bounding set, groups, gid, uid; then exactly the plan's capabilities, none inheritable, none ambient.
/// (CVE-2022-29162, CVE-2022-27650.)
void drop_to(const child& c, const process_record& process) noexcept;
/// Installs the plan's filter, if any.
void install_seccomp(const child& c) noexcept;

} // namespace gantry::cri_native::supervisor
