// `gantry exec`: this terminal on one side, an upgraded admin connection on the other.
#pragma once

#include "base/unique_fd.hpp"
#include "gantry/sdk/result.hpp"

namespace gantry::core::cli {

struct exec_terminal {
    bool interactive = false; ///< send stdin
    bool tty = false;         ///< raw mode, window size changes
};

/// Relays until the status frame; its exit code. Restores the terminal whatever happens.
result<int> relay_exec(base::unique_fd connection, exec_terminal terminal);

} // namespace gantry::core::cli
