#include "plugins/cri-native/images/reference.hpp"

#include <algorithm>

namespace gantry::images {

namespace {

constexpr std::size_t name_limit = 255;
constexpr std::size_t tag_limit = 128;

bool is_lower_alnum(char c) noexcept { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }
bool is_alnum(char c) noexcept { return is_lower_alnum(c) || (c >= 'A' && c <= 'Z'); }
bool is_hex(char c) noexcept { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); }

error bad_name(std::string_view text, std::string_view why) {
    return {.code = code::invalid,
            .message = "invalid image reference \"" + std::string(text) + "\": " + std::string(why),
            .detail = R"({"reason":"InvalidImageName"})"};
}

/// One path component: lower-case letters and digits, joined by ".", "_", "__" or any number of "-".
bool is_path_component(std::string_view text) noexcept {
    if (text.empty() || !is_lower_alnum(text.front()) || !is_lower_alnum(text.back())) return false;
    for (std::size_t i = 0; i < text.size();) {
        if (is_lower_alnum(text[i])) {
            ++i;
            continue;
        }
        const auto end = std::find_if(text.begin() + static_cast<std::ptrdiff_t>(i), text.end(), is_lower_alnum);
        const auto separator = text.substr(i, static_cast<std::size_t>(end - text.begin()) - i);
        const bool dashes = separator.find_first_not_of('-') == std::string_view::npos;
        if (!dashes && separator != "." && separator != "_" && separator != "__") return false;
        i += separator.size();
    }
    return true;
}

bool is_port(std::string_view text) noexcept {
    return !text.empty() && text.size() <= 5 &&
           std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

bool is_domain(std::string_view text) noexcept {
    if (text.starts_with('[')) { // an IPv6 literal
        const auto close = text.find(']');
        if (close == std::string_view::npos || close < 3) return false;
        const auto address = text.substr(1, close - 1);
        const auto rest = text.substr(close + 1);
        return std::all_of(address.begin(), address.end(),
                           [](char c) { return is_hex(c) || (c >= 'A' && c <= 'F') || c == ':'; }) &&
               (rest.empty() || (rest.front() == ':' && is_port(rest.substr(1))));
    }
    if (const auto colon = text.find(':'); colon != std::string_view::npos) {
        if (!is_port(text.substr(colon + 1))) return false;
        text = text.substr(0, colon);
    }
    while (true) {
        const auto dot = text.find('.');
        const auto label = text.substr(0, dot);
        if (label.empty() || !is_alnum(label.front()) || !is_alnum(label.back())) return false;
        if (!std::all_of(label.begin(), label.end(), [](char c) { return is_alnum(c) || c == '-'; })) return false;
        if (dot == std::string_view::npos) return true;
        text = text.substr(dot + 1);
    }
}

bool is_tag(std::string_view text) noexcept {
    return !text.empty() && text.size() <= tag_limit && (is_alnum(text.front()) || text.front() == '_') &&
           std::all_of(text.begin(), text.end(),
                       [](char c) { return is_alnum(c) || c == '_' || c == '.' || c == '-'; });
}

bool names_a_registry(std::string_view first) noexcept {
    return first == "localhost" || first.find_first_of(".:") != std::string_view::npos ||
           std::any_of(first.begin(), first.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
}

} // namespace

bool is_digest(std::string_view text) noexcept {
    constexpr std::string_view prefix = "sha256:";
    return text.size() == prefix.size() + 64 && text.starts_with(prefix) &&
           std::all_of(text.begin() + prefix.size(), text.end(), is_hex);
}

result<reference> parse_reference(std::string_view text) {
    if (text.empty()) return bad_name(text, "it is empty");
    reference ref;
    std::string_view rest = text;
    if (const auto at = rest.find('@'); at != std::string_view::npos) {
        ref.digest = rest.substr(at + 1);
        rest = rest.substr(0, at);
        if (!is_digest(ref.digest)) return bad_name(text, "a digest is sha256: and 64 lower-case hex digits");
    }
    if (const auto colon = rest.rfind(':');
        colon != std::string_view::npos && rest.find('/', colon) == std::string_view::npos) {
        ref.tag = rest.substr(colon + 1);
        rest = rest.substr(0, colon);
        if (!is_tag(ref.tag))
            return bad_name(
                text,
                "a tag is 1 to 128 letters, digits, \"_\", \".\" and \"-\", and starts with none of the last two");
    }
    if (rest.size() == 64 && std::all_of(rest.begin(), rest.end(), is_hex))
        return bad_name(text, "64 hex digits are an image id, not a name");

    const auto slash = rest.find('/');
    if (slash != std::string_view::npos && names_a_registry(rest.substr(0, slash))) {
        ref.domain = rest.substr(0, slash);
        rest = rest.substr(slash + 1);
        if (!is_domain(ref.domain)) return bad_name(text, "\"" + ref.domain + "\" is not a registry host[:port]");
    } else {
        ref.domain = "docker.io";
    }
    if (ref.domain == "index.docker.io") ref.domain = "docker.io";
    ref.path = rest;
    if (ref.domain == "docker.io" && ref.path.find('/') == std::string::npos) ref.path = "library/" + ref.path;

    std::string_view path = ref.path;
    while (true) {
        const auto end = path.find('/');
        const auto component = path.substr(0, end);
        if (!is_path_component(component))
            return bad_name(
                text,
                "\"" + std::string(component) +
                    "\" in its name is not lower-case letters and digits joined by \".\", \"_\", \"__\" or \"-\"");
        if (end == std::string_view::npos) break;
        path = path.substr(end + 1);
    }
    if (ref.name().size() > name_limit) return bad_name(text, "its name is longer than 255 bytes");
    if (ref.tag.empty() && ref.digest.empty()) ref.tag = "latest";
    return ref;
}

} // namespace gantry::images
