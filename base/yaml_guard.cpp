#include "base/yaml_guard.hpp"

#include <cstdint>

namespace gantry::base {

namespace {

constexpr long open_brackets_limit = 1000;

/// Length of the well-formed UTF-8 sequence at the start of text, 0 if it is none (overlong, surrogate, cut).
std::size_t utf8_length(std::string_view text) {
    const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
    const std::uint8_t lead = byte(0);
    if (lead < 0x80) return 1;
    const std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
    if (lead < 0xc2 || lead > 0xf4 || text.size() < length) return 0;
    for (std::size_t i = 1; i < length; ++i)
        if ((byte(i) & 0xc0) != 0x80) return 0;
    if ((lead == 0xe0 && byte(1) < 0xa0) || (lead == 0xed && byte(1) > 0x9f) || (lead == 0xf0 && byte(1) < 0x90) ||
        (lead == 0xf4 && byte(1) > 0x8f))
        return 0;
    return length;
}

} // namespace

result<void> check_yaml_text(std::string_view text, std::string_view file) {
    if (text.size() > yaml_byte_limit)
        return error{.code = code::resource,
                     .message = std::string(file) + ": " + std::to_string(text.size()) + " bytes; the limit is " +
                                std::to_string(yaml_byte_limit)};
    int line = 1;
    long open = 0;
    std::size_t indicators = 0;
    const auto refuse = [&](std::string_view what) {
        return error{.code = code::invalid,
                     .message = std::string(file) + ":" + std::to_string(line) + ": " + std::string(what)};
    };
    while (!text.empty()) {
        const char c = text.front();
        const auto byte = static_cast<std::uint8_t>(c);
        if (c == '\n') {
            ++line;
            open = 0;
            indicators = 0;
        } else if ((byte < 0x20 && c != '\t' && c != '\r') || byte == 0x7f) {
            return refuse(c == 0 ? "a NUL byte; YAML is text" : "a control character; YAML is text");
        } else if (c == '[' || c == '{' || c == ']' || c == '}' || c == ',') {
            if (++indicators > yaml_node_limit)
                return refuse("too many brackets and commas on one line; break the line");
            open += c == '[' || c == '{' ? 1 : c == ',' ? 0 : -1;
            if (open > open_brackets_limit) return refuse("more than 1000 brackets open on one line");
        }
        const std::size_t length = utf8_length(text);
        if (length == 0) return refuse("not UTF-8");
        text.remove_prefix(length);
    }
    return {};
}

} // namespace gantry::base
