#include "base/time.hpp"

#include <algorithm>
#include <cstdio>

namespace gantry::base {

using namespace std::chrono;

std::string format_rfc3339(wall_time time, int fraction_digits) {
    const auto day = floor<days>(time);
    const year_month_day date(day);
    const hh_mm_ss clock(floor<seconds>(time) - day);
    char text[48];
    int size = std::snprintf(text, sizeof text, "%04d-%02u-%02uT%02d:%02d:%02d", static_cast<int>(date.year()),
                             static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                             static_cast<int>(clock.hours().count()), static_cast<int>(clock.minutes().count()),
                             static_cast<int>(clock.seconds().count()));
    if (fraction_digits > 0) {
        const auto nanos = (time - floor<seconds>(time)).count();
        std::snprintf(text + size, sizeof text - static_cast<std::size_t>(size), ".%09d", static_cast<int>(nanos));
        size += 1 + std::min(fraction_digits, 9);
    }
    return std::string(text, static_cast<std::size_t>(size)) + "Z";
}

namespace {

/// Takes `count` digits off the front of text into value.
bool take_digits(std::string_view& text, std::size_t count, int& value) {
    if (text.size() < count) return false;
    value = 0;
    for (const char c : text.substr(0, count)) {
        if (c < '0' || c > '9') return false;
        value = value * 10 + (c - '0');
    }
    text.remove_prefix(count);
    return true;
}

bool take(std::string_view& text, char wanted) {
    if (text.empty() || (text.front() | 0x20) != (wanted | 0x20)) return false;
    text.remove_prefix(1);
    return true;
}

bool take_fraction(std::string_view& text, nanoseconds& fraction) {
    if (text.empty() || text.front() != '.') return true;
    text.remove_prefix(1);
    const auto digits = std::min(text.find_first_not_of("0123456789"), text.size());
    if (digits == 0) return false;
    std::int64_t value = 0;
    for (std::size_t i = 0; i < 9; ++i) value = value * 10 + (i < digits ? text[i] - '0' : 0);
    fraction = nanoseconds(value);
    text.remove_prefix(digits);
    return true;
}

bool take_offset(std::string_view& text, minutes& offset) {
    if (take(text, 'Z')) return true;
    if (text.empty() || (text.front() != '+' && text.front() != '-')) return false;
    const int sign = text.front() == '-' ? -1 : 1;
    text.remove_prefix(1);
    int hour = 0, minute = 0;
    if (!take_digits(text, 2, hour) || text.empty() || text.front() != ':') return false;
    text.remove_prefix(1);
    if (!take_digits(text, 2, minute) || hour > 23 || minute > 59) return false;
    offset = minutes(sign * (hour * 60 + minute));
    return true;
}

} // namespace

std::optional<wall_time> parse_rfc3339(std::string_view text) {
    int y = 0, mo = 0, d = 0, h = 0, mi = 0, s = 0;
    nanoseconds fraction{0};
    minutes offset{0};
    const bool read = take_digits(text, 4, y) && take(text, '-') && take_digits(text, 2, mo) && take(text, '-') &&
                      take_digits(text, 2, d) && take(text, 'T') && take_digits(text, 2, h) && take(text, ':') &&
                      take_digits(text, 2, mi) && take(text, ':') && take_digits(text, 2, s) &&
                      take_fraction(text, fraction) && take_offset(text, offset) && text.empty();
    const year_month_day date{year(y), month(static_cast<unsigned>(mo)), day(static_cast<unsigned>(d))};
    if (!read || !date.ok() || h > 23 || mi > 59 || s > 60) return std::nullopt;
    return wall_time(sys_days(date)) + hours(h) + minutes(mi) + seconds(s) + fraction - offset;
}

} // namespace gantry::base
