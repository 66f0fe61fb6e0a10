#include "core/config/reader.hpp"

#include <algorithm>

#include "core/config/names.hpp"
#include "core/config/suggest.hpp"

namespace gantry::core {

namespace json = base::json;

namespace {

const json::object no_keys;

std::string shown(std::chrono::milliseconds time) {
    const auto ms = time.count();
    if (ms % 3'600'000 == 0) return std::to_string(ms / 3'600'000) + "h";
    if (ms % 60'000 == 0) return std::to_string(ms / 60'000) + "m";
    return ms % 1000 == 0 ? std::to_string(ms / 1000) + "s" : std::to_string(ms) + "ms";
}

} // namespace

std::string wrong_value(const json::value& value, std::string_view allowed) {
    auto text = base::to_text(value);
    constexpr std::size_t most = 80;
    if (text.size() > most) text = text.substr(0, most) + "...";
    return "value " + text + ", allowed " + std::string(allowed);
}

object_reader::object_reader(fault_list& faults, const json::value& value, std::string path)
    : faults_(faults), object_(value.if_object()), path_(std::move(path)) {
    if (object_) return;
    object_ = &no_keys;
    if (!value.is_null()) faults_.add(path_, wrong_value(value, "a map of keys"));
}

std::string object_reader::path_of(std::string_view key) const {
    return path_.empty() ? std::string(key) : path_ + "." + std::string(key);
}

void object_reader::wrong(std::string_view key, const json::value& value, std::string_view allowed) {
    faults_.add(path_of(key), wrong_value(value, allowed));
}

void object_reader::missing(std::string_view key, std::string_view what) { faults_.add(path_of(key), what); }

const json::value* object_reader::any(std::string_view key) {
    known_.emplace_back(key);
    return object_->if_contains(key);
}

std::optional<std::string> object_reader::text(std::string_view key, std::string_view form,
                                               const std::function<bool(std::string_view)>& fits) {
    const auto* value = any(key);
    if (!value) return std::nullopt;
    const auto* text = value->if_string();
    if (text && !text->empty() && (!fits || fits(std::string_view(*text)))) return std::string(*text);
    wrong(key, *value, form.empty() ? std::string_view("a non-empty string") : form);
    return std::nullopt;
}

std::optional<std::string> object_reader::choice(std::string_view key, const std::vector<std::string>& allowed) {
    const auto* value = any(key);
    if (!value) return std::nullopt;
    const auto* text = value->if_string();
    if (text && std::find(allowed.begin(), allowed.end(), std::string_view(*text)) != allowed.end()) return std::string(*text);
    wrong(key, *value, join(allowed) + (text ? did_you_mean(*text, allowed) : std::string{}));
    return std::nullopt;
}

std::optional<std::string> object_reader::absolute_path(std::string_view key) {
    return text(key, "an absolute path", [](std::string_view path) {
        return path.front() == '/' && path.find('\0') == std::string_view::npos;
    });
}

std::optional<std::int64_t> object_reader::integer(std::string_view key, std::int64_t low, std::int64_t high) {
    const auto* value = any(key);
    if (!value) return std::nullopt;
    const auto* number = value->if_int64();
    if (number && *number >= low && *number <= high) return *number;
    wrong(key, *value, "an integer from " + std::to_string(low) + " to " + std::to_string(high));
    return std::nullopt;
}

std::optional<std::chrono::milliseconds> object_reader::duration(std::string_view key, std::chrono::milliseconds low,
                                                                 std::chrono::milliseconds high) {
    const auto* value = any(key);
    if (!value) return std::nullopt;
    if (const auto* text = value->if_string()) {
        const auto time = parse_duration(*text);
        if (time && *time >= low && *time <= high) return time;
    }
    wrong(key, *value, "a duration from " + shown(low) + " to " + shown(high) + " such as \"" + shown(low) + "\"");
    return std::nullopt;
}

const json::array* object_reader::array(std::string_view key) {
    const auto* value = any(key);
    if (!value || value->is_null()) return nullptr;
    if (!value->is_array()) wrong(key, *value, "a list");
    return value->if_array();
}

const json::object* object_reader::object(std::string_view key) {
    const auto* value = any(key);
    if (!value || value->is_null()) return nullptr;
    if (!value->is_object()) wrong(key, *value, "a map of keys");
    return value->if_object();
}

void object_reader::finish() {
    for (const auto& [key, value] : *object_) {
        if (std::find(known_.begin(), known_.end(), std::string_view(key)) != known_.end()) continue;
        faults_.add(path_of(key), "unknown key, allowed " + join(known_) + did_you_mean(key, known_));
    }
}

} // namespace gantry::core
