#include "core/host/descriptor.hpp"

#include <algorithm>

#include "base/files.hpp"
#include "core/config/schema.hpp"
#include "core/config/suggest.hpp"
#include "core/host/sha256.hpp"
#include "gantry/abi/plugin.h"

namespace gantry::core {

namespace json = base::json;

namespace {

constexpr std::string_view plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_";

/// Names become parts of file names and log lines.
bool is_plain_name(std::string_view text) {
    return !text.empty() && text.size() <= 128 && text.front() != '.' && text.find_first_not_of(plain) == std::string_view::npos;
}

/// "gantry.network/1", "com.acme.gpu/2-draft"
bool is_interface_id(std::string_view text) {
    const auto slash = text.find('/');
    return slash != std::string_view::npos && is_plain_name(text.substr(0, slash)) && is_plain_name(text.substr(slash + 1));
}

class note_reader {
public:
    note_reader(const json::object& object, std::string where) : object_(object), where_(std::move(where)) {}

    std::string text(std::string_view key, bool required = false) {
        const auto* value = object_.if_contains(key);
        if (value && value->is_string() && !(required && value->get_string().empty())) return std::string(value->get_string());
        if (value || required) fault(key, value, required ? "a non-empty string" : "a string");
        return {};
    }

    std::string name(std::string_view key) {
        auto name = text(key, true);
        if (!name.empty() && !is_plain_name(name)) fault(key, object_.if_contains(key), "at most 128 of a-z, A-Z, 0-9, '.', '-', '_'");
        return name;
    }

    std::vector<std::string> list(std::string_view key, bool (*fits)(std::string_view), std::string_view form, bool required = false) {
        std::vector<std::string> out;
        const auto* value = object_.if_contains(key);
        const auto* array = value ? value->if_array() : nullptr;
        if (!array) {
            if (value || required) fault(key, value, "an array of strings");
            return out;
        }
        for (const auto& item : *array) {
            const auto* one = item.if_string();
            if (!one || !fits(std::string_view(*one))) fault(key, &item, form);
            else out.emplace_back(*one);
        }
        return out;
    }

    std::map<std::string, std::vector<std::string>> lists(std::string_view key) {
        std::map<std::string, std::vector<std::string>> out;
        const auto* value = object_.if_contains(key);
        if (value && !value->is_object()) fault(key, value, "an object of arrays of strings");
        if (!value || !value->is_object()) return out;
        note_reader inner(value->get_object(), where_);
        for (const auto& [id, names] : value->get_object()) out.emplace(id, inner.list(id, is_plain_name, "plain names"));
        if (!inner.faults_.empty()) add(std::string(key) + "." + inner.faults_);
        return out;
    }

    int integer(std::string_view key, int low, int high, int fallback) {
        const auto* value = object_.if_contains(key);
        if (!value) return fallback;
        const auto* number = value->if_int64();
        if (number && *number >= low && *number <= high) return static_cast<int>(*number);
        fault(key, value, std::to_string(low) + " to " + std::to_string(high));
        return fallback;
    }

    json::object schema(std::string_view key) {
        const auto* value = object_.if_contains(key);
        if (!value) return {};
        if (!value->is_object()) {
            fault(key, value, "a JSON Schema object");
            return {};
        }
        for (const auto& found : check_schema(value->get_object())) add(std::string(key) + "." + found.path + ": " + found.what);
        return value->get_object();
    }

    void add(std::string_view what) { faults_ += (faults_.empty() ? "" : "; ") + std::string(what); }

    result<void> verdict() const {
        if (faults_.empty()) return {};
        return error{.code = code::invalid, .message = where_ + ": descriptor is wrong: " + faults_ + "; the plugin must be rebuilt"};
    }

private:
    void fault(std::string_view key, const json::value* value, std::string_view allowed) {
        add(std::string(key) + ": " + (value ? "value " + base::to_text(*value) : std::string("missing")) + ", allowed " +
            std::string(allowed));
    }

    const json::object& object_;
    std::string where_;
    std::string faults_;
};

std::string abi(std::uint16_t major, std::uint16_t minor) { return std::to_string(major) + "." + std::to_string(minor); }

std::string who_is(const descriptor& d, const std::string& file) { return file + ": plugin \"" + d.id + "\" " + d.version; }

result<void> check_abi(const descriptor& d, const std::string& file) {
    const std::string who = who_is(d, file);
    const std::string here = abi(GANTRY_ABI_MAJOR, GANTRY_ABI_MINOR);
    if (d.abi_major != GANTRY_ABI_MAJOR)
        return error{.code = code::unsupported,
                     .message = who + " is built for plugin ABI " + abi(d.abi_major, d.abi_minor) + ", this gantry has " + here +
                                ": install a build of the plugin for ABI " + std::to_string(GANTRY_ABI_MAJOR)};
    if (d.needs_minor > GANTRY_ABI_MINOR)
        return error{.code = code::unsupported,
                     .message = who + " needs plugin ABI " + abi(d.abi_major, d.needs_minor) + " or later, this gantry has " + here +
                                ": upgrade gantry or install an older version of the plugin"};
    return {};
}

result<void> check_services(const descriptor& d, const std::string& file) {
    std::vector<std::string> missing;
    for (const auto& id : d.services)
        if (std::find(host_service_ids().begin(), host_service_ids().end(), id) == host_service_ids().end()) missing.push_back(id);
    if (!missing.empty())
        return error{.code = code::unsupported,
                     .message = who_is(d, file) + " needs the host service " + join(missing) + ", this gantry offers " + join(host_service_ids()) +
                                ": upgrade gantry or install an older version of the plugin"};
    return {};
}

} // namespace

bool descriptor::has_trait(std::string_view trait) const { return std::find(traits.begin(), traits.end(), trait) != traits.end(); }

const std::vector<std::string>& host_service_ids() {
    static const std::vector<std::string> ids{
        GANTRY_SERVICE_OP,       GANTRY_SERVICE_LOG,    GANTRY_SERVICE_METRICS, GANTRY_SERVICE_EVENTS,
        GANTRY_SERVICE_TIMER,    GANTRY_SERVICE_FD,     GANTRY_SERVICE_EXECUTOR, GANTRY_SERVICE_CONFIG,
        GANTRY_SERVICE_STATE,    GANTRY_SERVICE_EXEC,   GANTRY_SERVICE_PEER,    GANTRY_SERVICE_TRACE};
    return ids;
}

result<descriptor> parse_descriptor(const plugin_note& note, const std::string& file) {
    GANTRY_TRY(const auto document, base::parse_json(note.json, file + ": descriptor"));
    if (!document.is_object()) return error{.code = code::invalid, .message = file + ": descriptor is not a JSON object"};
    note_reader in(document.get_object(), file);
    constexpr std::string_view id_form = "ids such as gantry.network/1";
    descriptor d;
    d.abi_major = note.abi_major;
    d.abi_minor = note.abi_minor;
    d.needs_minor = note.needs_minor;
    d.id = in.name("id");
    d.name = in.name("name");
    d.version = in.text("version", true);
    GANTRY_CHECK(check_abi(d, file)); // a later ABI may give the other members another form
    d.vendor = in.text("vendor");
    d.license = in.text("license");
    d.url = in.text("url");
    d.description = in.text("description");
    d.capabilities = in.list("capabilities", is_interface_id, id_form, true);
    d.peers = in.list("requires", is_interface_id, id_form);
    d.services = in.list("services", is_interface_id, id_form);
    d.traits = in.list("traits", is_plain_name, "plain names");
    d.operations = in.lists("operations");
    d.max_concurrency = in.integer("maxConcurrency", 1, 4096, 64);
    d.config = in.schema("config");
    d.json = note.json;
    GANTRY_CHECK(in.verdict());
    GANTRY_CHECK(check_services(d, file));
    return d;
}

result<std::vector<descriptor>> read_descriptors(std::string_view elf, const std::string& file) {
    GANTRY_TRY(const auto notes, read_plugin_notes(elf, file));
    std::vector<descriptor> all;
    for (const auto& note : notes) {
        GANTRY_TRY(auto one, parse_descriptor(note, file));
        for (const auto& other : all)
            if (other.id == one.id || other.name == one.name)
                return error{.code = code::invalid, .message = file + ": two descriptors of id \"" + other.id + "\" or name \"" +
                                                               other.name + "\"; the plugin must be rebuilt"};
        all.push_back(std::move(one));
    }
    return all;
}

result<json::value> inspect_plugin(const std::string& file) {
    GANTRY_TRY(const auto bytes, base::read_file(file));
    GANTRY_TRY(const auto notes, read_plugin_notes(bytes, file));
    const auto digest = sha256_hex(bytes);
    json::array out;
    for (const auto& note : notes) {
        json::object one{{"file", file},
                         {"sha256", digest},
                         {"abi", json::object{{"major", note.abi_major}, {"minor", note.abi_minor}, {"needsMinor", note.needs_minor}}}};
        GANTRY_TRY(const auto text, base::parse_json(note.json, file + ": descriptor"));
        if (const auto* members = text.if_object())
            for (const auto& [key, value] : *members) one.emplace(key, value);
        const auto judged = parse_descriptor(note, file);
        one["loadable"] = judged.ok();
        if (!judged) one["reason"] = judged.error().message;
        out.push_back(std::move(one));
    }
    return json::value(std::move(out));
}

} // namespace gantry::core
