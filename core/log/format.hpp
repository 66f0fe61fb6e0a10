// How one log line looks. Pure functions.
#pragma once

#include <chrono>
#include <span>
#include <string>
#include <string_view>

#include "core/log/log.hpp"

namespace gantry::core::log {

using time_point = std::chrono::system_clock::time_point;

/// 2026-11-30T18:06:07.123Z INFO  message plugin=net op="a b"
/// Values with other than plain characters are quoted and escaped as in JSON, so that a line stays one line.
std::string text_line(time_point time, log_level level, std::string_view message, std::span<const field> fields);

/// {"ts":"2026-11-30T18:06:07.123Z","level":"info","msg":"message","plugin":"net"}
std::string json_line(time_point time, log_level level, std::string_view message, std::span<const field> fields);

/// Appends text as a JSON string with its quotes; bytes that are not UTF-8 become U+FFFD.
void append_quoted(std::string& out, std::string_view text);

} // namespace gantry::core::log
