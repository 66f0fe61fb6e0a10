#include "gantry/model/quantity.hpp"

#include <array>
#include <limits>

namespace gantry::model {

namespace {

__extension__ typedef __int128 wide;

constexpr wide nano_per_unit = 1'000'000'000;
constexpr wide nano_per_milli = 1'000'000;
constexpr wide max_units = std::numeric_limits<std::int64_t>::max();

constexpr std::string_view malformed =
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

error bad(std::string_view why) { return {.code = code::invalid, .message = std::string(why)}; }

bool digit(char c) { return c >= '0' && c <= '9'; }

struct suffix {
    std::string_view text;
    int base; // 10 or 1024
    int exponent;
};
constexpr suffix suffixes[] = {{"n", 10, -9},   {"u", 10, -6},   {"m", 10, -3},   {"", 10, 0},     {"k", 10, 3},
                               {"M", 10, 6},    {"G", 10, 9},    {"T", 10, 12},   {"P", 10, 15},   {"E", 10, 18},
                               {"Ki", 1024, 1}, {"Mi", 1024, 2}, {"Gi", 1024, 3}, {"Ti", 1024, 4}, {"Pi", 1024, 5},
                               {"Ei", 1024, 6}};

wide ceil_div(wide a, wide b) {
    const wide q = a / b;
    return (a % b != 0 && (a > 0) == (b > 0)) ? q + 1 : q;
}

std::int64_t saturate(wide v) {
    if (v > max_units) return std::numeric_limits<std::int64_t>::max();
    if (v < -max_units) return -std::numeric_limits<std::int64_t>::max();
    return static_cast<std::int64_t>(v);
}

std::string digits_of(wide v) {
    if (v == 0) return "0";
    std::string out;
    for (wide rest = v < 0 ? -v : v; rest != 0; rest /= 10) out.insert(out.begin(), static_cast<char>('0' + int(rest % 10)));
    return v < 0 ? "-" + out : out;
}

/// value *= 10^exponent; false when it does not fit or leaves a rest.
enum class scaling { exact, overflow, inexact };
scaling scale_by_ten(wide& value, int exponent) {
    for (; exponent > 0 && value != 0; --exponent)
        if (__builtin_mul_overflow(value, wide{10}, &value)) return scaling::overflow;
    for (; exponent < 0 && value != 0; ++exponent) {
        if (value % 10 != 0) return scaling::inexact;
        value /= 10;
    }
    return scaling::exact;
}

} // namespace

quantity quantity::of_units(std::int64_t units, format f) {
    quantity q;
    q.nano_ = units * nano_per_unit;
    q.format_ = f;
    return q;
}

quantity quantity::of_milli(std::int64_t milli) {
    quantity q;
    q.nano_ = milli * nano_per_milli;
    return q;
}

result<quantity> quantity::parse(std::string_view text) {
    constexpr std::string_view too_large = "must not be larger than 2^63-1 in magnitude";
    std::size_t at = 0;
    const bool negative = !text.empty() && text[0] == '-';
    if (!text.empty() && (text[0] == '-' || text[0] == '+')) ++at;

    wide value = 0;
    int fraction = 0, digits = 0;
    bool point = false;
    for (; at < text.size() && (digit(text[at]) || text[at] == '.'); ++at) {
        if (text[at] == '.') {
            if (point) return bad(malformed);
            point = true;
            continue;
        }
        ++digits;
        if (__builtin_mul_overflow(value, wide{10}, &value) ||
            __builtin_add_overflow(value, wide{text[at] - '0'}, &value))
            return bad(too_large);
        if (point) ++fraction;
    }
    if (digits == 0) return bad(malformed);

    const std::string_view tail = text.substr(at);
    quantity q;
    int exponent = -fraction;
    wide binary = 1;
    if (tail.size() > 1 && (tail[0] == 'e' || tail[0] == 'E') && tail != "Ei") {
        std::size_t i = 1;
        const bool minus = tail[i] == '-';
        if (tail[i] == '-' || tail[i] == '+') ++i;
        if (i == tail.size()) return bad(malformed);
        int power = 0;
        for (; i < tail.size(); ++i) {
            if (!digit(tail[i])) return bad(malformed);
            power = power < 1000 ? power * 10 + (tail[i] - '0') : power;
        }
        exponent += minus ? -power : power;
        q.format_ = format::decimal_exponent;
    } else {
        const suffix* found = nullptr;
        for (const auto& s : suffixes)
            if (s.text == tail) found = &s;
        if (found == nullptr) {
            const bool letters = tail.find_first_not_of("eEinumkKMGTP") == std::string_view::npos;
            return bad(letters ? "unable to parse quantity's suffix" : malformed);
        }
        if (found->base == 10) {
            exponent += found->exponent;
        } else {
            for (int i = 0; i < found->exponent; ++i) binary *= 1024;
            q.format_ = format::binary_si;
        }
    }

    // The binary factor first: 0.5Gi has no fraction left after it.
    if (__builtin_mul_overflow(value, binary, &value)) return bad(too_large);
    switch (scale_by_ten(value, exponent + 9)) {
    case scaling::overflow: return bad(too_large);
    case scaling::inexact: return bad("must not be finer than one billionth (n)");
    case scaling::exact: break;
    }
    if (value > max_units * nano_per_unit) return bad(too_large);
    q.nano_ = negative ? -value : value;
    return q;
}

std::int64_t quantity::units() const { return saturate(ceil_div(nano_, nano_per_unit)); }
std::int64_t quantity::milli() const { return saturate(ceil_div(nano_, nano_per_milli)); }
bool quantity::is_whole() const { return nano_ % nano_per_unit == 0; }

std::int64_t quantity::divided_by(const quantity& divisor) const {
    return divisor.nano_ == 0 ? 0 : saturate(ceil_div(nano_, divisor.nano_));
}

quantity& quantity::operator+=(const quantity& other) {
    if (nano_ == 0) format_ = other.format_;
    nano_ += other.nano_;
    return *this;
}

std::string quantity::to_string() const {
    if (nano_ == 0) return "0";
    const wide magnitude = nano_ < 0 ? -nano_ : nano_;
    if (format_ == format::binary_si && is_whole() && magnitude >= 1024 * nano_per_unit) {
        constexpr std::array<std::string_view, 7> names{"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
        wide value = nano_ / nano_per_unit;
        std::size_t i = 0;
        for (; i + 1 < names.size() && value % 1024 == 0; ++i) value /= 1024;
        return digits_of(value) + std::string(names[i]);
    }
    wide value = nano_;
    int exponent = -9;
    for (; exponent < 18 && value % 1000 == 0; exponent += 3) value /= 1000;
    if (format_ == format::decimal_exponent)
        return digits_of(value) + (exponent == 0 ? std::string() : "e" + std::to_string(exponent));
    for (const auto& s : suffixes)
        if (s.base == 10 && s.exponent == exponent) return digits_of(value) + std::string(s.text);
    return digits_of(value);
}

} // namespace gantry::model
