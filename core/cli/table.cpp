#include "core/cli/table.hpp"

#include <algorithm>
#include <cstdio>
#include <ctime>

namespace gantry::core::cli {

namespace {

std::size_t width_of(std::string_view text) {
    return static_cast<std::size_t>(
        std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::string join_units(long long major, const char* major_unit, long long minor, const char* minor_unit) {
    std::string text = std::to_string(major) + major_unit;
    if (minor > 0) text += std::to_string(minor) + minor_unit;
    return text;
}

} // namespace

std::string render_table(const std::vector<std::vector<std::string>>& rows) {
    std::vector<std::size_t> widths;
    for (const auto& row : rows) {
        widths.resize(std::max(widths.size(), row.size()));
        for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
    }
    std::string out;
    for (const auto& row : rows) {
        std::string line;
        for (std::size_t i = 0; i < row.size(); ++i) {
            line += row[i];
            line.append(widths[i] - width_of(row[i]) + 2, ' ');
        }
        line.erase(line.find_last_not_of(' ') + 1);
        out += line + '\n';
    }
    return out;
}

std::string short_duration(std::chrono::seconds age) {
    const long long s = std::max<long long>(0, age.count());
    if (s < 120) return std::to_string(s) + "s";
    if (s < 600) return join_units(s / 60, "m", s % 60, "s");
    if (s < 3 * 3600) return std::to_string(s / 60) + "m";
    if (s < 8 * 3600) return join_units(s / 3600, "h", s % 3600 / 60, "m");
    if (s < 48 * 3600) return std::to_string(s / 3600) + "h";
    if (s < 8 * 86400) return join_units(s / 86400, "d", s % 86400 / 3600, "h");
    return std::to_string(s / 86400) + "d";
}

std::string short_size(std::uint64_t bytes) {
    static constexpr const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double value = static_cast<double>(bytes);
    std::size_t unit = 0;
    while (value >= 1024 && unit + 1 < std::size(units)) {
        value /= 1024;
        ++unit;
    }
    char text[32];
    std::snprintf(text, sizeof text, unit == 0 || value >= 10 ? "%.0f%s" : "%.1f%s", value, units[unit]);
    return text;
}

std::string age_of(std::string_view rfc3339, std::chrono::system_clock::time_point now) {
    std::tm tm{};
    const std::string text(rfc3339);
    const char* end = ::strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &tm);
    if (end == nullptr) return "<unknown>";
    const auto then = std::chrono::system_clock::from_time_t(::timegm(&tm));
    return short_duration(std::chrono::duration_cast<std::chrono::seconds>(now - then));
}

} // namespace gantry::core::cli
