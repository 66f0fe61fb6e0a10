// Terminals (3.2 step 10).
#pragma once

#include "plugins/cri-native/supervisor/child.hpp"

namespace gantry::cri_native::supervisor {

struct terminal {
    int master = -1;
    int slave = -1;
};

/// A pty of the devpts instance whose root is given. Both ends come from descriptors (TIOCGPTPEER), never by
/// /dev/pts/N. (CVE-2025-52565.) The slave belongs to the plan's user and has the plan's size.
terminal open_terminal(const child& c, int devpts) noexcept;
/// Covers /dev/console with the slave.
void bind_console(const child& c, int root, int slave) noexcept;
/// Makes stdio the terminal and the terminal the session's. After setsid.
void adopt_terminal(const child& c, int slave) noexcept;

} // namespace gantry::cri_native::supervisor
