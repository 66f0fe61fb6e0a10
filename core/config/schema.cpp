#include "core/config/schema.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <regex>

#include "core/config/suggest.hpp"

namespace gantry::core {

namespace json = base::json;

namespace {

using faults = std::vector<schema_fault>;

constexpr std::size_t longest_matched = 4096; // std::regex recurses once a character

std::string child(const std::string& path, std::string_view key) {
    return path.empty() ? std::string(key) : path + "." + std::string(key);
}

std::string item(const std::string& path, std::size_t index) { return path + "[" + std::to_string(index) + "]"; }

std::string shown(const json::value& value) {
    auto text = base::to_text(value);
    constexpr std::size_t most = 80;
    if (text.size() > most) text = text.substr(0, most) + "...";
    return text;
}

const std::vector<std::string>& type_names() {
    static const std::vector<std::string> names{"object", "array", "string", "integer", "number", "boolean", "null"};
    return names;
}

std::optional<double> number_of(const json::value& value) {
    if (const auto* i = value.if_int64()) return static_cast<double>(*i);
    if (const auto* u = value.if_uint64()) return static_cast<double>(*u);
    if (const auto* d = value.if_double()) return *d;
    return std::nullopt;
}

bool has_type(const json::value& value, std::string_view type) {
    if (type == "object") return value.is_object();
    if (type == "array") return value.is_array();
    if (type == "string") return value.is_string();
    if (type == "boolean") return value.is_bool();
    if (type == "null") return value.is_null();
    const auto number = number_of(value);
    return number && (type == "number" || *number == std::floor(*number));
}

std::string type_of(const json::value& value) {
    for (const auto& name : type_names())
        if (has_type(value, name)) return name;
    return "number";
}

std::vector<std::string> types_in(const json::object& schema) {
    const auto* type = schema.if_contains("type");
    if (!type) return {};
    if (const auto* one = type->if_string()) return {std::string(*one)};
    std::vector<std::string> types;
    for (const auto& one : type->as_array()) types.emplace_back(one.as_string());
    return types;
}

std::vector<std::string> keys_of(const json::object& object) {
    std::vector<std::string> keys;
    for (const auto& [key, value] : object) keys.emplace_back(key);
    return keys;
}

const json::object* object_at(const json::object& schema, std::string_view key) {
    const auto* value = schema.if_contains(key);
    return value ? value->if_object() : nullptr;
}

// ---- the schema itself

void check(const json::object& schema, const std::string& path, faults& out);

void check_type(const json::value& type, const std::string& path, faults& out) {
    const auto known = [](const json::value& name) {
        const auto* text = name.if_string();
        return text && std::find(type_names().begin(), type_names().end(), std::string_view(*text)) != type_names().end();
    };
    const auto* many = type.if_array();
    if (many ? std::all_of(many->begin(), many->end(), known) : known(type)) return;
    out.push_back({child(path, "type"), "value " + shown(type) + ", allowed " + join(type_names()) + " or an array of them"});
}

void check_pattern(const json::value& pattern, const std::string& path, faults& out) {
    const auto* text = pattern.if_string();
    if (!text) return out.push_back({child(path, "pattern"), "value " + shown(pattern) + ", allowed a string"});
    try {
        const std::regex compiled(text->c_str(), std::regex::ECMAScript);
    } catch (const std::regex_error& e) {
        out.push_back({child(path, "pattern"), "value " + shown(pattern) + " is not a regular expression: " + e.what()});
    }
}

void check_keyword(std::string_view key, const json::value& value, const std::string& path, faults& out) {
    const auto expect = [&](bool good, std::string_view allowed) {
        if (!good) out.push_back({child(path, key), "value " + shown(value) + ", allowed " + std::string(allowed)});
        return good;
    };
    if (key == "type") {
        check_type(value, path, out);
    } else if (key == "properties") {
        if (!expect(value.is_object(), "an object of schemas")) return;
        for (const auto& [name, sub] : value.get_object()) {
            const auto at = child(child(path, key), name);
            if (const auto* schema = sub.if_object()) check(*schema, at, out);
            else out.push_back({at, "value " + shown(sub) + ", allowed a schema"});
        }
    } else if (key == "items") {
        if (expect(value.is_object(), "a schema")) check(value.get_object(), child(path, key), out);
    } else if (key == "additionalProperties") {
        if (expect(value.is_bool() || value.is_object(), "a boolean or a schema") && value.is_object())
            check(value.get_object(), child(path, key), out);
    } else if (key == "required") {
        const auto* names = value.if_array();
        const auto text = [](const json::value& name) { return name.is_string(); };
        expect(names && std::all_of(names->begin(), names->end(), text), "an array of strings");
    } else if (key == "enum") {
        expect(value.is_array() && !value.get_array().empty(), "a non-empty array");
    } else if (key == "minimum" || key == "maximum") {
        expect(number_of(value).has_value(), "a number");
    } else if (key == "pattern") {
        check_pattern(value, path, out);
    } else if (key == "title" || key == "description") {
        expect(value.is_string(), "a string");
    } else if (key != "default") {
        out.push_back({child(path, key), "unknown schema keyword, allowed type, properties, required, additionalProperties, "
                                         "enum, items, minimum, maximum, pattern, default, title, description"});
    }
}

void check(const json::object& schema, const std::string& path, faults& out) {
    for (const auto& [key, value] : schema) check_keyword(key, value, path, out);
}

// ---- a value

void apply(const json::object& schema, json::value& value, const std::string& path, faults& out);

void apply_object(const json::object& schema, json::object& object, const std::string& path, faults& out) {
    static const json::object none;
    const auto* declared = object_at(schema, "properties");
    const json::object& properties = declared ? *declared : none;
    for (const auto& [key, sub] : properties) {
        const auto* fallback = sub.get_object().if_contains("default");
        if (fallback && !object.contains(key)) object.emplace(key, *fallback);
    }
    if (const auto* required = schema.if_contains("required")) {
        for (const auto& name : required->as_array())
            if (!object.contains(name.get_string()))
                out.push_back({child(path, name.get_string()), "missing, this key is required"});
    }
    const auto* rest = schema.if_contains("additionalProperties");
    const bool closed = rest && rest->is_bool() && !rest->get_bool();
    for (auto& [key, sub] : object) {
        const auto at = child(path, key);
        if (const auto* known = object_at(properties, key)) {
            apply(*known, sub, at, out);
        } else if (closed) {
            const auto allowed = keys_of(properties);
            out.push_back({at, "unknown key, allowed " + (allowed.empty() ? "none" : join(allowed)) + did_you_mean(key, allowed)});
        } else if (rest && rest->is_object()) {
            apply(rest->get_object(), sub, at, out);
        }
    }
}

void apply_text(const json::object& schema, const json::value& value, const std::string& path, faults& out) {
    const auto* pattern = schema.if_contains("pattern");
    if (!pattern) return;
    const auto& text = value.get_string();
    const auto matches = [&] {
        if (text.size() > longest_matched) return false;
        try {
            return std::regex_search(text.c_str(), std::regex(pattern->get_string().c_str(), std::regex::ECMAScript));
        } catch (const std::regex_error&) { // too complex for this text
            return false;
        }
    };
    if (!matches()) out.push_back({path, "value " + shown(value) + ", allowed pattern " + std::string(pattern->get_string())});
}

void apply_number(const json::object& schema, const json::value& value, const std::string& path, faults& out) {
    const auto number = *number_of(value);
    const auto* low = schema.if_contains("minimum");
    const auto* high = schema.if_contains("maximum");
    const bool fits = (!low || number >= *number_of(*low)) && (!high || number <= *number_of(*high));
    if (fits) return;
    const std::string allowed = low && high ? base::to_text(*low) + " to " + base::to_text(*high)
                                : low       ? base::to_text(*low) + " or more"
                                            : base::to_text(*high) + " or less";
    out.push_back({path, "value " + shown(value) + ", allowed " + allowed});
}

void apply(const json::object& schema, json::value& value, const std::string& path, faults& out) {
    const auto types = types_in(schema);
    const auto fits = [&](const std::string& type) { return has_type(value, type); };
    if (!types.empty() && std::none_of(types.begin(), types.end(), fits)) {
        out.push_back({path, "value " + shown(value) + " is of type " + type_of(value) + ", allowed " + join(types)});
        return;
    }
    if (const auto* choices = schema.if_contains("enum")) {
        const auto& allowed = choices->as_array();
        if (std::find(allowed.begin(), allowed.end(), value) == allowed.end()) {
            std::vector<std::string> names, words;
            for (const auto& choice : allowed) {
                names.push_back(base::to_text(choice));
                if (choice.is_string()) words.emplace_back(choice.get_string());
            }
            const auto hint = value.is_string() ? did_you_mean(value.get_string(), words) : std::string{};
            out.push_back({path, "value " + shown(value) + ", allowed " + join(names) + hint});
            return;
        }
    }
    if (auto* object = value.if_object()) apply_object(schema, *object, path, out);
    else if (value.is_string()) apply_text(schema, value, path, out);
    else if (number_of(value)) apply_number(schema, value, path, out);
    if (auto* array = value.if_array()) {
        if (const auto* each = object_at(schema, "items"))
            for (std::size_t i = 0; i < array->size(); ++i) apply(*each, (*array)[i], item(path, i), out);
    }
}

} // namespace

std::vector<schema_fault> check_schema(const json::object& schema) {
    faults out;
    check(schema, "", out);
    return out;
}

std::vector<schema_fault> apply_schema(const json::object& schema, json::value& value) {
    faults out;
    apply(schema, value, "", out);
    return out;
}

} // namespace gantry::core
