// Durations as Go prints them, since events and messages of the kubelet carry them: "10s", "1m20s", "1.5s", "250ms".
#pragma once

#include <chrono>
#include <string>

namespace gantry::core {

/// Rounded to milliseconds.
inline std::string go_duration(std::chrono::nanoseconds d) {
    using namespace std::chrono;
    auto ms = round<milliseconds>(d).count();
    if (ms <= 0) return "0s";
    if (ms < 1000) return std::to_string(ms) + "ms";
    std::string out;
    const auto hours = ms / 3'600'000, minutes = ms / 60'000 % 60;
    if (hours > 0) out += std::to_string(hours) + "h";
    if (hours > 0 || minutes > 0) out += std::to_string(minutes) + "m";
    out += std::to_string(ms / 1000 % 60);
    if (const auto rest = ms % 1000; rest > 0) {
        std::string digits = std::to_string(1000 + rest).substr(1);
        digits.erase(digits.find_last_not_of('0') + 1);
        out += "." + digits;
    }
    return out + "s";
}

} // namespace gantry::core
