// Wall clock time as CRI counts it.
#pragma once

#include <chrono>
#include <cstdint>

namespace gantry::cri_native {

/// Nanoseconds since 1970.
inline std::int64_t unix_now() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
        .count();
}

} // namespace gantry::cri_native
