#include "core/logs/cri_line.hpp"

#include <algorithm>

namespace gantry::core::logs {

std::optional<cri_line> parse_cri_line(std::string_view record) {
    cri_line line;
    const auto word = [&](std::string_view& out) {
        const auto space = record.find(' ');
        if (space == 0 || space == std::string_view::npos) return false;
        out = record.substr(0, space);
        record.remove_prefix(space + 1);
        return true;
    };
    std::string_view tags;
    if (!word(line.time) || !word(line.stream) || !word(tags)) return std::nullopt;
    if (line.stream != "stdout" && line.stream != "stderr") return std::nullopt;
    const auto tag = tags.substr(0, tags.find(':'));
    if (tag != "P" && tag != "F") return std::nullopt;
    line.partial = tag == "P";
    line.payload = record;
    return line;
}

namespace {

constexpr std::size_t to_seconds = 19; // "2006-01-02T15:04:05"

std::string_view fraction(std::string_view time) {
    time.remove_prefix(std::min(time.size(), to_seconds));
    if (time.starts_with('.')) time.remove_prefix(1);
    return time.substr(0, time.find_first_not_of("0123456789"));
}

} // namespace

bool is_before(std::string_view time, std::string_view since) {
    const auto seconds = time.substr(0, to_seconds).compare(since.substr(0, to_seconds));
    if (seconds != 0) return seconds < 0;
    const auto a = fraction(time);
    const auto b = fraction(since);
    for (std::size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
        const char x = i < a.size() ? a[i] : '0';
        const char y = i < b.size() ? b[i] : '0';
        if (x != y) return x < y;
    }
    return false;
}

} // namespace gantry::core::logs
