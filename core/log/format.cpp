#include "core/log/format.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <ctime>

#include <fmt/format.h>

namespace gantry::core::log {

namespace {

std::string stamp(time_point time) {
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count();
    const std::time_t seconds = ms / 1000;
    std::tm utc{};
    ::gmtime_r(&seconds, &utc);
    return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday, utc.tm_hour,
                       utc.tm_min, utc.tm_sec, ms % 1000);
}

/// Length of the well-formed UTF-8 sequence at the start of text (RFC 3629), 0 if there is none.
std::size_t sequence_length(std::string_view text) {
    const auto at = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
    const auto lead = at(0);
    if (lead < 0x80) return 1;
    const std::size_t length = lead >= 0xc2 && lead <= 0xdf ? 2 : lead >= 0xe0 && lead <= 0xef ? 3 : lead >= 0xf0 && lead <= 0xf4 ? 4 : 0;
    if (length == 0 || text.size() < length) return 0;
    for (std::size_t i = 1; i < length; ++i)
        if ((at(i) & 0xc0) != 0x80) return 0;
    const auto second = at(1);
    const bool overlong = (lead == 0xe0 && second < 0xa0) || (lead == 0xf0 && second < 0x90);
    const bool outside = (lead == 0xed && second > 0x9f) || (lead == 0xf4 && second > 0x8f);
    return overlong || outside ? 0 : length;
}

bool is_plain(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("-._/:@+,").find(c) != std::string_view::npos;
}

/// The message of a text line: control characters escaped, the rest as it is.
void append_escaped(std::string& out, std::string_view text) {
    while (!text.empty()) {
        const auto length = sequence_length(text);
        const auto c = static_cast<std::uint8_t>(text[0]);
        if (length == 0) out += "\xef\xbf\xbd";
        else if (c == '\n') out += "\\n";
        else if (c == '\t') out += "\\t";
        else if (c == '\r') out += "\\r";
        else if (c < 0x20 || c == 0x7f) out += fmt::format("\\u{:04x}", c);
        else out += text.substr(0, length);
        text.remove_prefix(std::max<std::size_t>(length, 1));
    }
}

} // namespace

void append_quoted(std::string& out, std::string_view text) {
    out += '"';
    while (!text.empty()) {
        const auto cut = std::min(text.find_first_of("\"\\"), text.size());
        append_escaped(out, text.substr(0, cut));
        if (cut == text.size()) break;
        out += '\\';
        out += text[cut];
        text.remove_prefix(cut + 1);
    }
    out += '"';
}

std::string text_line(time_point time, log_level level, std::string_view message, std::span<const field> fields) {
    constexpr std::string_view names[] = {"DEBUG ", "INFO  ", "WARN  ", "ERROR "};
    std::string line = stamp(time) + " ";
    line += names[std::clamp(static_cast<int>(level), 0, 3)];
    append_escaped(line, message);
    for (const auto& [key, value] : fields) {
        line += ' ';
        append_escaped(line, key);
        line += '=';
        if (!value.empty() && std::all_of(value.begin(), value.end(), is_plain)) line += value;
        else append_quoted(line, value);
    }
    line += '\n';
    return line;
}

std::string json_line(time_point time, log_level level, std::string_view message, std::span<const field> fields) {
    std::string line = "{\"ts\":\"" + stamp(time) + "\",\"level\":\"" + std::string(to_string(level)) + "\",\"msg\":";
    append_quoted(line, message);
    for (const auto& [key, value] : fields) {
        line += ',';
        append_quoted(line, key);
        line += ':';
        append_quoted(line, value);
    }
    line += "}\n";
    return line;
}

} // namespace gantry::core::log
