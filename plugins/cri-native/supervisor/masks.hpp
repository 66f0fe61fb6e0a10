// Paths of the container that are hidden or made read-only (3.2 step 9).
#pragma once

#include "plugins/cri-native/supervisor/child.hpp"

namespace gantry::cri_native::supervisor {

/// Covers files with the host's /dev/null, proven to be it, and directories with an empty read-only tmpfs.
/// (CVE-2025-31133: the image's /dev/null is never used.) A path that the container lacks is skipped.
void mask_paths(const child& c, int root) noexcept;
void make_paths_readonly(const child& c, int root) noexcept;

} // namespace gantry::cri_native::supervisor
