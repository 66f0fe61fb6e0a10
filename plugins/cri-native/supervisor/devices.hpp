// Device nodes and what else stands in /dev (3.2 step 8).
#pragma once

#include "plugins/cri-native/supervisor/child.hpp"

namespace gantry::cri_native::supervisor {

/// fd, stdin, stdout, stderr, ptmx and core, made relative to the fresh /dev.
void add_device_links(const child& c, int dev) noexcept;
/// The plan's device nodes, each relative to the directory found for it inside the root.
void make_devices(const child& c, int root) noexcept;

} // namespace gantry::cri_native::supervisor
