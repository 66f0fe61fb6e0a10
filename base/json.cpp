#include "base/json.hpp"

#include <boost/json/src.hpp>

namespace gantry::base {

result<json::value> parse_json(std::string_view text, std::string_view what) {
    json::stream_parser parser({}, json::parse_options{.max_depth = 64});
    boost::system::error_code ec;
    const std::size_t used = parser.write(text.data(), text.size(), ec);
    if (!ec) parser.finish(ec);
    if (ec)
        return error{.code = code::invalid,
                     .message = std::string(what) + ": not JSON at byte " + std::to_string(used) + ": " + ec.message()};
    return parser.release();
}

std::string string_at(const json::object& object, std::string_view key) {
    const auto* value = object.if_contains(key);
    const auto* text = value != nullptr ? value->if_string() : nullptr;
    return text != nullptr ? std::string(*text) : std::string();
}

std::string to_text(const json::value& value) { return json::serialize(value); }

namespace {

void pretty(std::string& out, const json::value& value, std::size_t depth) {
    const auto line = [&](std::size_t d) { out.append(1, '\n').append(2 * d, ' '); };
    if (const auto* object = value.if_object(); object && !object->empty()) {
        out += '{';
        bool first = true;
        for (const auto& [key, item] : *object) {
            if (!std::exchange(first, false)) out += ',';
            line(depth + 1);
            out += json::serialize(json::string(key)) + ": ";
            pretty(out, item, depth + 1);
        }
        line(depth);
        out += '}';
    } else if (const auto* array = value.if_array(); array && !array->empty()) {
        out += '[';
        bool first = true;
        for (const auto& item : *array) {
            if (!std::exchange(first, false)) out += ',';
            line(depth + 1);
            pretty(out, item, depth + 1);
        }
        line(depth);
        out += ']';
    } else {
        out += json::serialize(value);
    }
}

} // namespace

std::string to_pretty(const json::value& value) {
    std::string out;
    pretty(out, value, 0);
    return out;
}

} // namespace gantry::base
