#include "plugins/cri-native/helper/entry_name.hpp"

#include <vector>

#include "base/invalid.hpp"

namespace gantry::cri_helper {

namespace {

constexpr std::size_t path_limit = 4096;
constexpr std::size_t depth_limit = 256; // whoever walks the tree holds a descriptor a level
constexpr std::string_view whiteout_prefix = ".wh.";
constexpr std::string_view opaque_name = ".wh..wh..opq";
constexpr std::string_view reserved_prefix = ".wh..wh.";

result<std::vector<std::string_view>> components(std::string_view raw) {
    if (raw.empty()) return invalid("the name is empty");
    if (raw.size() > path_limit) return invalid("the name is longer than 4096 bytes");
    if (raw.find('\0') != std::string_view::npos) return invalid("the name holds a NUL byte");
    std::vector<std::string_view> parts;
    for (std::size_t begin = 0; begin <= raw.size();) {
        const auto end = std::min(raw.find('/', begin), raw.size());
        const auto part = raw.substr(begin, end - begin);
        begin = end + 1;
        if (part.empty() || part == ".") continue;
        if (part == "..") {
            if (parts.empty()) return invalid("the name leaves the layer's root");
            parts.pop_back();
            continue;
        }
        if (part.size() > 255) return invalid("a part of the name is longer than 255 bytes");
        parts.push_back(part);
        if (parts.size() > depth_limit) return invalid("it lies more than 256 directories deep");
    }
    return parts;
}

entry_name join(name_kind kind, const std::vector<std::string_view>& parts) {
    entry_name name;
    name.kind = kind;
    for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
        if (i != 0) name.parent += '/';
        name.parent += parts[i];
    }
    if (!parts.empty()) name.base = parts.back();
    return name;
}

} // namespace

std::string quote(std::string_view raw) {
    std::string text = "\"";
    for (const char c : raw.substr(0, 256)) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte >= 0x20 && byte < 0x7f && c != '"' && c != '\\') {
            text += c;
        } else {
            text += "\\x";
            text += "0123456789abcdef"[byte >> 4];
            text += "0123456789abcdef"[byte & 15];
        }
    }
    if (raw.size() > 256) text += "...";
    return text + '"';
}

result<entry_name> parse_entry_name(std::string_view raw) {
    GANTRY_TRY(auto parts, components(raw));
    if (parts.empty()) return join(name_kind::root, parts);
    for (const auto part : parts)
        if (part.starts_with(reserved_prefix) && part != opaque_name) return join(name_kind::ignored, parts);
    for (std::size_t i = 0; i + 1 < parts.size(); ++i)
        if (parts[i].starts_with(whiteout_prefix)) return invalid("a directory cannot have the reserved prefix .wh.");
    if (parts.back() == opaque_name) return join(name_kind::opaque, parts);
    if (!parts.back().starts_with(whiteout_prefix)) return join(name_kind::entry, parts);
    parts.back().remove_prefix(whiteout_prefix.size());
    if (parts.back().empty() || parts.back() == "." || parts.back() == "..") return invalid("a whiteout of no name");
    return join(name_kind::whiteout, parts);
}

result<entry_name> parse_link_target(std::string_view raw) {
    GANTRY_TRY(const auto parts, components(raw));
    return join(parts.empty() ? name_kind::root : name_kind::entry, parts);
}

} // namespace gantry::cri_helper
