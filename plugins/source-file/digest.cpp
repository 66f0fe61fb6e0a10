#include "plugins/source-file/digest.hpp"

#include <map>

namespace gantry::source_file {

namespace json = base::json;

void fnv128::add(std::string_view bytes) {
    constexpr wide prime = word(0x0000000001000000, 0x000000000000013b);
    for (const char c : bytes) {
        state_ ^= static_cast<std::uint8_t>(c);
        state_ *= prime;
    }
}

void fnv128::add_value(const json::value& value) {
    if (const auto* object = value.if_object()) {
        std::map<std::string_view, const json::value*> sorted;
        for (const auto& [key, item] : *object) sorted.emplace(key, &item);
        add("{");
        for (const auto& [key, item] : sorted) {
            add(std::to_string(key.size()) + ":"); // lengths keep neighbours apart
            add(key);
            add_value(*item);
        }
        add("}");
    } else if (const auto* array = value.if_array()) {
        add("[");
        for (const auto& item : *array) add_value(item);
        add("]");
    } else {
        const std::string text = base::to_text(value);
        add(std::to_string(text.size()) + ":");
        add(text);
    }
}

std::string fnv128::hex() const {
    constexpr char digits[] = "0123456789abcdef";
    std::string out(32, '0');
    wide rest = state_;
    for (auto at = out.rbegin(); at != out.rend(); ++at, rest >>= 4) *at = digits[static_cast<std::size_t>(rest & 15)];
    return out;
}

} // namespace gantry::source_file
