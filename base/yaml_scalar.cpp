#include "base/yaml_scalar.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <limits>
#include <optional>

namespace gantry::base {

namespace {

constexpr std::string_view core_tag = "tag:yaml.org,2002:";

template <std::size_t N>
bool one_of(std::string_view text, const std::string_view (&words)[N]) {
    return std::find(std::begin(words), std::end(words), text) != std::end(words);
}

constexpr std::string_view true_words[] = {"y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"};
constexpr std::string_view false_words[] = {"n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"};
constexpr std::string_view null_words[] = {"", "~", "null", "Null", "NULL"};
constexpr std::string_view nonfinite_words[] = {".nan",  ".NaN",  ".NAN",  ".inf",  ".Inf",  ".INF",
                                                "+.inf", "+.Inf", "+.INF", "-.inf", "-.Inf", "-.INF"};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// digits with an optional sign and prefix; nothing when it is no integer or does not fit 64 bits.
std::optional<json::value> integer(std::string_view text) {
    bool negative = false;
    if (!text.empty() && (text[0] == '-' || text[0] == '+')) {
        negative = text[0] == '-';
        text.remove_prefix(1);
    }
    int base = 10;
    if (text.size() > 1 && text[0] == '0') {
        const char kind = text[1];
        base = kind == 'x' || kind == 'X' ? 16 : kind == 'b' || kind == 'B' ? 2 : 8;
        text.remove_prefix(is_digit(kind) ? 1 : 2);
        if (base == 8 && !is_digit(kind) && kind != 'o' && kind != 'O') return std::nullopt;
    }
    std::uint64_t magnitude = 0;
    const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), magnitude, base);
    if (text.empty() || ec != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    constexpr auto top = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    if (negative) {
        if (magnitude > top + 1) return std::nullopt;
        return json::value(static_cast<std::int64_t>(0 - magnitude));
    }
    if (magnitude <= top) return json::value(static_cast<std::int64_t>(magnitude));
    return json::value(magnitude);
}

/// [-+]? ( .d+ | d+ (. d*)? ) ( [eE] [-+]? d+ )?
bool float_shape(std::string_view text) {
    std::size_t at = 0;
    const auto digits = [&] {
        const std::size_t from = at;
        while (at < text.size() && is_digit(text[at])) ++at;
        return at - from;
    };
    if (at < text.size() && (text[at] == '-' || text[at] == '+')) ++at;
    const bool whole = digits() > 0;
    if (at < text.size() && text[at] == '.') {
        ++at;
        if (digits() == 0 && !whole) return false;
    } else if (!whole) {
        return false;
    }
    if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
        ++at;
        if (at < text.size() && (text[at] == '-' || text[at] == '+')) ++at;
        if (digits() == 0) return false;
    }
    return at == text.size();
}

json::value number(double value) {
    constexpr double exact = 9007199254740992.0; // 2^53: every integer below is a double
    if (std::trunc(value) == value && std::abs(value) < exact) return static_cast<std::int64_t>(value);
    return value;
}

error unfit(std::string_view text, std::string_view what) {
    return {.code = code::invalid, .message = "\"" + std::string(text.substr(0, 64)) + "\" " + std::string(what)};
}

} // namespace

result<json::value> resolve_plain_scalar(std::string_view text) {
    if (one_of(text, null_words)) return json::value(nullptr);
    if (one_of(text, true_words)) return json::value(true);
    if (one_of(text, false_words)) return json::value(false);
    if (one_of(text, nonfinite_words))
        return unfit(text, "is a number that JSON cannot hold; quote it to mean the text");
    const char first = text.front();
    if (!is_digit(first) && first != '-' && first != '+' && first != '.') return json::value(text);

    std::string digits(text);
    if (first != '.') std::erase(digits, '_');
    if (first != '.')
        if (auto value = integer(digits)) return std::move(*value);
    if (!float_shape(digits)) return json::value(text);
    const std::string_view unsigned_plus = digits[0] == '+' ? std::string_view(digits).substr(1) : digits;
    double value = 0;
    const auto [end, ec] = std::from_chars(unsigned_plus.data(), unsigned_plus.data() + unsigned_plus.size(), value);
    if (ec != std::errc{} || end != unsigned_plus.data() + unsigned_plus.size()) return json::value(text);
    return number(value);
}

result<json::value> resolve_tagged_scalar(std::string_view tag, std::string_view text) {
    if (!tag.starts_with(core_tag))
        return unfit(tag, "is a tag this node does not know; only !!str, !!int, !!float, !!bool and !!null are read");
    const std::string_view type = tag.substr(core_tag.size());
    if (type == "str") return json::value(text);
    GANTRY_TRY(auto value, resolve_plain_scalar(text));
    if (type == "int" && (value.is_int64() || value.is_uint64())) return value;
    if (type == "float" && value.is_number()) return value;
    if (type == "bool" && value.is_bool()) return value;
    if (type == "null" && value.is_null()) return value;
    return unfit(text, "is not a !!" + std::string(type));
}

} // namespace gantry::base
