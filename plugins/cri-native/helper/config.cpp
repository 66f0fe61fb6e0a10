#include "plugins/cri-native/helper/config.hpp"

#include "plugins/cri-native/images/reference.hpp"

namespace gantry::cri_helper {

namespace {

using base::json::array;
using base::json::object;
using base::json::value;

error bad(std::string_view field, std::string_view why) {
    return {.code = code::invalid, .message = "image config: " + std::string(field) + " " + std::string(why)};
}

/// Absent and null are the same.
const value* find(const object& in, std::string_view key) {
    const auto* found = in.if_contains(key);
    return found == nullptr || found->is_null() ? nullptr : found;
}

result<std::string> text(const object& in, std::string_view key) {
    const auto* found = find(in, key);
    if (found == nullptr) return std::string();
    if (!found->is_string()) return bad(key, "is not a string");
    if (found->as_string().find('\0') != base::json::string::npos) return bad(key, "holds a NUL byte");
    return std::string(found->as_string());
}

result<array> texts(const object& in, std::string_view key) {
    const auto* found = find(in, key);
    if (found == nullptr) return array{};
    if (!found->is_array()) return bad(key, "is not a list");
    for (const auto& item : found->as_array()) {
        if (!item.is_string()) return bad(key, "holds something that is not a string");
        if (item.as_string().find('\0') != base::json::string::npos) return bad(key, "holds a NUL byte");
    }
    return found->as_array();
}

result<object> map(const object& in, std::string_view key) {
    const auto* found = find(in, key);
    if (found == nullptr) return object{};
    if (!found->is_object()) return bad(key, "is not an object");
    return found->as_object();
}

/// A set is written as an object with empty values.
result<array> keys(const object& in, std::string_view key) {
    GANTRY_TRY(const auto set, map(in, key));
    array names;
    for (const auto& item : set) names.emplace_back(item.key());
    return names;
}

} // namespace

result<parsed_config> parse_config(std::string_view bytes) {
    GANTRY_TRY(const auto document, base::parse_json(bytes, "image config"));
    if (!document.is_object()) return bad("it", "is not an object");
    const object& root = document.as_object();
    parsed_config parsed;
    GANTRY_TRY(const auto run, map(root, "config"));
    for (const auto* key : {"created", "os", "architecture"}) {
        GANTRY_TRY(parsed.fields[key], text(root, key));
    }
    if (const auto& os = parsed.fields["os"].as_string(); !os.empty() && os != "linux")
        return error{.code = code::unsupported,
                     .message = "the image is for " + std::string(os) + ", this node runs linux"};

    struct names {
        const char* from;
        const char* to;
    };
    for (const auto& [from, to] : {names{"User", "user"}, {"WorkingDir", "workingDir"}, {"StopSignal", "stopSignal"}}) {
        GANTRY_TRY(parsed.fields[to], text(run, from));
    }
    for (const auto& [from, to] : {names{"Env", "env"}, {"Entrypoint", "entrypoint"}, {"Cmd", "cmd"}}) {
        GANTRY_TRY(parsed.fields[to], texts(run, from));
    }
    for (const auto& [from, to] : {names{"Volumes", "volumes"}, {"ExposedPorts", "exposedPorts"}}) {
        GANTRY_TRY(parsed.fields[to], keys(run, from));
    }
    GANTRY_TRY(const auto labels, map(run, "Labels"));
    for (const auto& label : labels)
        if (!label.value().is_string()) return bad("Labels", "holds something that is not a string");
    parsed.fields["labels"] = labels;
    // Builders write [""] to clear an inherited entrypoint.
    auto& entrypoint = parsed.fields["entrypoint"].as_array();
    if (entrypoint.size() == 1 && entrypoint[0].as_string().empty()) entrypoint.clear();

    GANTRY_TRY(const auto rootfs, map(root, "rootfs"));
    GANTRY_TRY(const auto type, text(rootfs, "type"));
    if (type != "layers") return bad("rootfs.type", "is \"" + type + "\", not \"layers\": this is no container image");
    GANTRY_TRY(const auto diff_ids, texts(rootfs, "diff_ids"));
    for (const auto& id : diff_ids) {
        if (!images::is_digest(id.as_string()))
            return bad("rootfs.diff_ids", "holds something that is no sha256 digest");
        parsed.diff_ids.emplace_back(id.as_string());
    }
    return parsed;
}

} // namespace gantry::cri_helper
