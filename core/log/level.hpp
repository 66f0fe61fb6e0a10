// Log levels and formats, shared by the configuration and the log itself.
#pragma once

#include <optional>
#include <string_view>

#include "gantry/abi/host.h"

namespace gantry::core {

enum class log_level : int {
    debug = GANTRY_LOG_DEBUG,
    info = GANTRY_LOG_INFO,
    warn = GANTRY_LOG_WARN,
    error = GANTRY_LOG_ERROR,
};

enum class log_format { text, json };

constexpr std::string_view to_string(log_level level) noexcept {
    switch (level) {
    case log_level::debug: return "debug";
    case log_level::info: return "info";
    case log_level::warn: return "warn";
    case log_level::error: return "error";
    }
    return "error";
}

constexpr std::optional<log_level> parse_log_level(std::string_view text) noexcept {
    for (const auto level : {log_level::debug, log_level::info, log_level::warn, log_level::error})
        if (text == to_string(level)) return level;
    return std::nullopt;
}

} // namespace gantry::core
