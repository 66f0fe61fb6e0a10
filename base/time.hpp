// RFC 3339 timestamps, always UTC. Pure.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace gantry::base {

using wall_time = std::chrono::time_point<std::chrono::system_clock, std::chrono::nanoseconds>;

/// "2026-01-02T03:04:05Z", or with fraction_digits (1 to 9) "2026-01-02T03:04:05.000000006Z".
std::string format_rfc3339(wall_time time, int fraction_digits = 0);

/// Reads RFC 3339 with any offset and up to nine fraction digits (more are cut); nullopt for anything else.
std::optional<wall_time> parse_rfc3339(std::string_view text);

} // namespace gantry::base
