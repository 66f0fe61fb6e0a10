// PID 1 of a pod that shares one PID namespace between its containers: reaps, does nothing else, can do nothing else.
#pragma once

#include "plugins/cri-native/supervisor/text.hpp"

namespace gantry::cri_native::supervisor {

/// In a child with PID and mount namespaces of its own. Its root is an empty read-only tmpfs, so that /proc/1/root
/// shows containers nothing; it has no capability, no descriptor and nobody's uid.
[[noreturn]] void run_pod_init(text run_dir) noexcept;

} // namespace gantry::cri_native::supervisor
