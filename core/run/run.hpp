// `gantry run`: assembles plugin host, node and admin socket, and runs the loop until a signal ends it.
#pragma once

#include "core/host/config_check.hpp"
#include "gantry/sdk/result.hpp"

namespace gantry::core {

/// Runs until SIGTERM or SIGINT; a second signal ends the process at once. Containers go on running either way, the next
/// start adopts them.
result<void> run(checked_config config);

} // namespace gantry::core
