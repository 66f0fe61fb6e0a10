#include "gantry/model/names.hpp"

#include <arpa/inet.h>

#include <algorithm>

namespace gantry::model {

namespace {

constexpr std::string_view label_rule =
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    "an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
constexpr std::string_view subdomain_rule =
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
constexpr std::string_view qualified_rule =
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
constexpr std::string_view label_value_rule =
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
constexpr std::string_view sysctl_rule =
    "must have at most 253 characters and match regex "
    "^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$";

bool lower(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }
bool alnum(char c) { return lower(c) || (c >= 'A' && c <= 'Z'); }

std::string too_long(std::size_t limit) { return "must be no more than " + std::to_string(limit) + " characters"; }

template <class Inner, class End>
bool shaped(std::string_view text, Inner inner, End end) {
    return !text.empty() && end(text.front()) && end(text.back()) && std::all_of(text.begin(), text.end(), inner);
}

bool is_label(std::string_view text) {
    return shaped(text, [](char c) { return lower(c) || c == '-'; }, lower);
}

bool is_qualified_part(std::string_view text) {
    return shaped(text, [](char c) { return alnum(c) || c == '-' || c == '_' || c == '.'; }, alnum);
}

template <class F>
bool each_part(std::string_view text, std::string_view separators, F f) {
    while (true) {
        const auto end = text.find_first_of(separators);
        if (!f(text.substr(0, end))) return false;
        if (end == std::string_view::npos) return true;
        text.remove_prefix(end + 1);
    }
}

} // namespace

std::string check_dns_label(std::string_view text) {
    if (text.size() > 63) return too_long(63);
    return is_label(text) ? std::string() : std::string(label_rule);
}

std::string check_dns_subdomain(std::string_view text) {
    if (text.size() > 253) return too_long(253);
    return each_part(text, ".", is_label) ? std::string() : std::string(subdomain_rule);
}

std::string check_qualified_name(std::string_view text) {
    const auto slash = text.find('/');
    if (slash != std::string_view::npos) {
        const auto prefix = text.substr(0, slash);
        if (prefix.empty()) return "prefix part must be non-empty";
        if (auto why = check_dns_subdomain(prefix); !why.empty()) return "prefix part " + why;
        text.remove_prefix(slash + 1);
    }
    if (text.empty()) return "name part must be non-empty";
    if (text.size() > 63) return "name part " + too_long(63);
    return is_qualified_part(text) ? std::string() : std::string(qualified_rule);
}

std::string check_label_value(std::string_view text) {
    if (text.size() > 63) return too_long(63);
    return text.empty() || is_qualified_part(text) ? std::string() : std::string(label_value_rule);
}

std::string check_port_name(std::string_view text) {
    if (text.size() > 15) return too_long(15);
    if (!std::all_of(text.begin(), text.end(), [](char c) { return lower(c) || c == '-'; }))
        return "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)";
    if (std::none_of(text.begin(), text.end(), [](char c) { return c >= 'a' && c <= 'z'; }))
        return "must contain at least one letter (a-z)";
    if (text.find("--") != std::string_view::npos) return "must not contain consecutive hyphens";
    if (text.front() == '-' || text.back() == '-') return "must not begin or end with a hyphen";
    return {};
}

std::string check_env_name(std::string_view text) {
    const bool good = !text.empty() && std::all_of(text.begin(), text.end(),
                                                   [](char c) { return c >= ' ' && c <= '~' && c != '='; });
    return good ? std::string()
                : "a valid environment variable name must consist only of printable ASCII characters other than '='";
}

std::string check_sysctl_name(std::string_view text) {
    const auto part = [](std::string_view p) {
        return shaped(p, [](char c) { return lower(c) || c == '-' || c == '_'; }, lower);
    };
    return text.size() <= 253 && each_part(text, "./", part) ? std::string() : std::string(sysctl_rule);
}

std::string check_ip(std::string_view text) {
    unsigned char bytes[16];
    const std::string copy(text);
    const bool good = inet_pton(AF_INET, copy.c_str(), bytes) == 1 || inet_pton(AF_INET6, copy.c_str(), bytes) == 1;
    return good ? std::string() : "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
}

} // namespace gantry::model
