// The forms of names and durations in NodeConfig.
#pragma once

#include <chrono>
#include <optional>
#include <string_view>

namespace gantry::core {

inline constexpr std::string_view instance_name_form = "[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?";

constexpr bool is_instance_name(std::string_view name) noexcept {
    const auto alnum = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
    if (name.empty() || name.size() > 32 || !alnum(name.front()) || !alnum(name.back())) return false;
    for (const char c : name)
        if (!alnum(c) && c != '-') return false;
    return true;
}

/// A node name is a DNS-1123 subdomain: at most 253 bytes, labels as instance names of up to 63, joined by dots.
constexpr bool is_node_name(std::string_view name) noexcept {
    if (name.empty() || name.size() > 253) return false;
    const auto alnum = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
    char before = '.';
    for (const char c : name) {
        if (!alnum(c) && c != '-' && c != '.') return false;
        if (!alnum(c) && !alnum(before) && !(c == '-' && before == '-')) return false;
        before = c;
    }
    return alnum(before);
}

/// "250ms", "10s", "2m", "1h"; nothing else.
constexpr std::optional<std::chrono::milliseconds> parse_duration(std::string_view text) noexcept {
    std::int64_t amount = 0;
    std::size_t digits = 0;
    for (; digits < text.size() && text[digits] >= '0' && text[digits] <= '9'; ++digits) {
        if (digits == 9) return std::nullopt;
        amount = amount * 10 + (text[digits] - '0');
    }
    const auto unit = text.substr(digits);
    if (digits == 0) return std::nullopt;
    if (unit == "ms") return std::chrono::milliseconds(amount);
    if (unit == "s") return std::chrono::seconds(amount);
    if (unit == "m") return std::chrono::minutes(amount);
    if (unit == "h") return std::chrono::hours(amount);
    return std::nullopt;
}

} // namespace gantry::core
