// Text for people: aligned columns, ages, sizes.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::core::cli {

/// Columns padded to their widest cell (in code points), two spaces apart, no trailing spaces. rows[0] is the head.
std::string render_table(const std::vector<std::vector<std::string>>& rows);

/// kubectl's style of short durations: 45s, 3m12s, 2h5m, 4d3h.
std::string short_duration(std::chrono::seconds age);

/// 412B, 3.9KiB, 1.2MiB, 28MiB.
std::string short_size(std::uint64_t bytes);

/// Age of an RFC 3339 timestamp at `now`; "<unknown>" if it does not parse.
std::string age_of(std::string_view rfc3339, std::chrono::system_clock::time_point now);

} // namespace gantry::core::cli
