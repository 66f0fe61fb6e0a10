#include "core/images/reference.hpp"

#include <algorithm>

namespace gantry::core {

namespace {

bool lower(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }
bool upper(char c) { return c >= 'A' && c <= 'Z'; }
bool alnum(char c) { return lower(c) || upper(c); }
bool hex(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); }
bool word(char c) { return alnum(c) || c == '_'; }

template <class F>
bool all(std::string_view text, F f) {
    return std::all_of(text.begin(), text.end(), f);
}

/// [a-z0-9]+ joined by one of: ".", "_", "__", any number of "-".
bool is_path_component(std::string_view text) {
    if (text.empty() || !lower(text.front()) || !lower(text.back())) return false;
    for (std::size_t i = 0; i < text.size();) {
        if (lower(text[i])) {
            ++i;
            continue;
        }
        const char separator = text[i];
        std::size_t run = 0;
        while (i < text.size() && text[i] == separator) ++run, ++i;
        const bool good = separator == '-' || (separator == '.' && run == 1) || (separator == '_' && run <= 2);
        if (!good || (i < text.size() && !lower(text[i]))) return false;
    }
    return true;
}

bool is_path(std::string_view text) {
    while (true) {
        const auto slash = text.find('/');
        if (!is_path_component(text.substr(0, slash))) return false;
        if (slash == std::string_view::npos) return true;
        text.remove_prefix(slash + 1);
    }
}

bool is_domain(std::string_view text) {
    if (text.starts_with('[')) {
        const auto end = text.find(']');
        if (end == std::string_view::npos) return false;
        const auto rest = text.substr(end + 1);
        return all(text.substr(1, end - 1), [](char c) { return hex(c) || (c >= 'A' && c <= 'F') || c == ':'; }) &&
               (rest.empty() || (rest[0] == ':' && rest.size() > 1 && all(rest.substr(1), [](char c) { return c >= '0' && c <= '9'; })));
    }
    const auto colon = text.find(':');
    if (colon != std::string_view::npos) {
        const auto port = text.substr(colon + 1);
        if (port.empty() || !all(port, [](char c) { return c >= '0' && c <= '9'; })) return false;
        text = text.substr(0, colon);
    }
    while (true) {
        const auto dot = text.find('.');
        const auto part = text.substr(0, dot);
        if (part.empty() || part.front() == '-' || part.back() == '-' ||
            !all(part, [](char c) { return alnum(c) || c == '-'; }))
            return false;
        if (dot == std::string_view::npos) return true;
        text.remove_prefix(dot + 1);
    }
}

bool is_tag(std::string_view text) {
    return !text.empty() && text.size() <= 128 && word(text.front()) &&
           all(text, [](char c) { return word(c) || c == '.' || c == '-'; });
}

bool is_digest(std::string_view text) {
    const auto colon = text.find(':');
    if (colon == std::string_view::npos || colon == 0) return false;
    const auto value = text.substr(colon + 1);
    return all(text.substr(0, colon), [](char c) { return alnum(c) || c == '+' || c == '.' || c == '-' || c == '_'; }) &&
           value.size() >= 32 && all(value, hex);
}

struct parts {
    std::string_view domain; ///< empty: the default registry
    std::string_view path;
    std::string_view tag;
    std::string_view digest;
};

/// What is wrong, or an empty string.
std::string split(std::string_view image, parts& out) {
    constexpr std::string_view bad = "invalid reference format";
    if (image.size() == 64 && all(image, hex))
        return "invalid repository name (" + std::string(image) +
               "), cannot specify 64-byte hexadecimal strings";
    std::string_view rest = image;
    // The first part is a registry when it can be no name on the default one.
    if (const auto slash = rest.find('/'); slash != std::string_view::npos) {
        const auto first = rest.substr(0, slash);
        if (first.find_first_of(".:") != std::string_view::npos || first == "localhost" ||
            std::any_of(first.begin(), first.end(), upper)) {
            out.domain = first;
            rest = rest.substr(slash + 1);
        }
    }
    if (const auto at = rest.find('@'); at != std::string_view::npos) {
        out.digest = rest.substr(at + 1);
        rest = rest.substr(0, at);
        if (!is_digest(out.digest)) return std::string(bad);
    }
    const bool colon = rest.find(':') != std::string_view::npos;
    out.path = rest.substr(0, rest.find(':'));
    if (std::any_of(out.path.begin(), out.path.end(), upper))
        return std::string(bad) + ": repository name (" + std::string(out.path) + ") must be lowercase";
    if (colon) {
        out.tag = rest.substr(out.path.size() + 1);
        if (!is_tag(out.tag)) return std::string(bad);
    }
    if (!is_path(out.path) || (!out.domain.empty() && !is_domain(out.domain))) return std::string(bad);
    constexpr std::size_t limit = 255;
    if (out.path.size() > limit)
        return "repository name must not be more than " + std::to_string(limit) + " characters";
    return {};
}

} // namespace

result<std::string> with_default_tag(std::string_view image) {
    parts p;
    if (const auto why = split(image, p); !why.empty())
        return error{.code = code::invalid,
                     .message = "Failed to apply default image tag \"" + std::string(image) +
                                "\": couldn't parse image name \"" + std::string(image) + "\": " + why};
    return std::string(image) + (p.tag.empty() && p.digest.empty() ? ":latest" : "");
}

} // namespace gantry::core
