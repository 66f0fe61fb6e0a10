// What the loop does when time passes: exec timeouts, drains that end, stuck clients.
#pragma once

#include <cstdint>

namespace gantry::cri_native::supervisor {

/// On the steady clock; 0 for none.
std::int64_t next_deadline() noexcept;
void run_deadlines() noexcept;

/// The earlier of two, where 0 means never.
inline std::int64_t earlier(std::int64_t a, std::int64_t b) noexcept { return a == 0 || (b != 0 && b < a) ? b : a; }

} // namespace gantry::cri_native::supervisor
