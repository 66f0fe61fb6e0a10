// The part of crash_log that runs inside signal handlers.
#pragma once

#include "base/unique_fd.hpp"
#include "core/host/crash_log.hpp"

namespace gantry::core {

/// Where crash records go, opened with O_APPEND; an empty descriptor stops recording.
void set_crash_file(base::unique_fd fd);

} // namespace gantry::core
