// The container's root: overlay or bind, made below RUN_DIR/rootfs in the child's own mount namespace (3.2 steps 3, 4,
// 11).
#pragma once

#include "plugins/cri-native/supervisor/child.hpp"

namespace gantry::cri_native::supervisor {

/// Mounts the root and gives its descriptor. Everything of the host must be a slave or private before.
int make_root(const child& c) noexcept;
/// Makes the root the process's "/" and drops the host's tree.
void enter_root(const child& c, int root) noexcept;

} // namespace gantry::cri_native::supervisor
