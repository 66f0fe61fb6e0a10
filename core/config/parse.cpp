#include "core/config/parse.hpp"

#include <algorithm>
#include <cctype>
#include <limits>
#include <map>

#include "base/yaml.hpp"
#include "core/config/bind.hpp"
#include "core/config/names.hpp"
#include "core/config/reader.hpp"
#include "core/config/suggest.hpp"

namespace gantry::core {

namespace json = base::json;
using namespace std::chrono_literals;

namespace {

const json::value absent;

const json::value& value_or_absent(const json::value* value) { return value ? *value : absent; }

std::string instance_name_rule() {
    return std::string(instance_name_form) + ": at most 32 of a-z, 0-9 and -, no - at either end";
}

void read_node(object_reader& root, node_settings& node, fault_list& faults, const std::string& host_name) {
    object_reader in(faults, value_or_absent(root.any("node")), "node");
    const auto put = [](std::string& to, std::optional<std::string> value) {
        if (value) to = std::move(*value);
    };
    node.name = host_name;
    std::transform(node.name.begin(), node.name.end(), node.name.begin(), [](unsigned char c) { return std::tolower(c); });
    put(node.name, in.text("name", "a DNS name of at most 253 of a-z, 0-9, - and .", is_node_name));
    put(node.instance, in.text("instance", instance_name_rule(), is_instance_name));
    put(node.state_dir, in.absolute_path("stateDir"));
    put(node.run_dir, in.absolute_path("runDir"));
    put(node.socket, in.absolute_path("socket"));
    put(node.pod_logs_dir, in.absolute_path("podLogsDir"));
    if (const auto format = in.choice("logFormat", {"text", "json"}))
        node.log_format = *format == "json" ? log_format::json : log_format::text;
    if (const auto level = in.choice("logLevel", {"debug", "info", "warn", "error"})) node.log_level = *parse_log_level(*level);
    in.finish();
    if (node.socket.empty())
        node.socket = (node.instance == "main" ? node.run_dir : node.run_root()) + "/gantry.sock";
    constexpr std::size_t longest_socket = 107; // sun_path of unix(7), with its final NUL
    if (node.socket.size() > longest_socket)
        faults.add("node.socket", wrong_value(json::value(node.socket), "at most 107 bytes: choose a shorter path"));
}

plugin_limits read_limits(object_reader& entry, fault_list& faults) {
    plugin_limits limits;
    object_reader in(faults, value_or_absent(entry.any("limits")), entry.path_of("limits"));
    if (const auto ops = in.integer("maxConcurrency", 1, 4096)) limits.max_concurrency = static_cast<int>(*ops);
    if (const auto stall = in.duration("laneStall", 100ms, 10min)) limits.lane_stall = *stall;
    if (const auto grace = in.duration("grace", 10ms, 5min)) limits.grace = *grace;
    in.finish();
    return limits;
}

plugin_settings read_plugin(const json::value& value, const std::string& path, fault_list& faults) {
    plugin_settings plugin;
    object_reader in(faults, value, path);
    const auto name = in.text("name", instance_name_rule(), is_instance_name);
    const auto use = in.text("use");
    if (const auto file = in.absolute_path("path")) plugin.path = *file;
    const auto is_digest = [](std::string_view text) {
        return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
    };
    if (const auto digest = in.text("sha256", "64 lower-case hexadecimal digits, as sha256sum prints them", is_digest))
        plugin.sha256 = *digest;
    if (const auto* config = in.object("config")) plugin.config = *config;
    plugin.limits = read_limits(in, faults);
    if (const auto isolation = in.choice("isolation", {"inproc", "process"}); isolation == "process")
        faults.add(in.path_of("isolation"), "value \"process\", allowed inproc: plugins in a process of their own do not exist "
                                            "yet, remove the key");
    in.finish();
    if (value.is_object()) {
        const auto* object = value.if_object();
        if (!object->contains("name")) in.missing("name", "missing, every plugin needs an instance name");
        if (!object->contains("use")) in.missing("use", "missing, name the plugin to load, for example cni-bridge");
    }
    plugin.name = name.value_or("");
    plugin.use = use.value_or("");
    return plugin;
}

void read_plugins(object_reader& root, node_config& config, fault_list& faults) {
    const auto* list = root.array("plugins");
    if (!list) return;
    std::map<std::string, std::size_t> seen;
    for (std::size_t i = 0; i < list->size(); ++i) {
        const auto path = "plugins[" + std::to_string(i) + "]";
        auto plugin = read_plugin((*list)[i], path, faults);
        if (const auto [first, fresh] = seen.emplace(plugin.name, i); !fresh && !plugin.name.empty()) {
            const auto line = faults.line_of("plugins[" + std::to_string(first->second) + "].name");
            faults.add(path + ".name", "value \"" + plugin.name + "\" is taken by the plugin of line " + std::to_string(line) +
                                           ", give each instance a name of its own");
        }
        config.plugins.push_back(std::move(plugin));
    }
}

void read_runtime(object_reader& bind, bind_settings& settings, fault_list& faults) {
    const auto* value = bind.any("runtime");
    if (!value) return;
    if (const auto* name = value->if_string()) { // short for {default: NAME}
        settings.runtime_default = *name;
        return;
    }
    object_reader in(faults, *value, bind.path_of("runtime"));
    settings.runtime_default = in.text("default").value_or("");
    if (const auto* handlers = in.object("handlers")) {
        object_reader each(faults, *in.any("handlers"), in.path_of("handlers"));
        for (const auto& [handler, instance] : *handlers)
            if (auto name = each.text(handler)) settings.runtime_handlers.emplace(handler, std::move(*name));
    }
    in.finish();
}

std::vector<std::string> read_names(object_reader& bind, const bind_key& key, fault_list& faults) {
    if (!key.many) {
        const auto name = bind.text(key.name, "the name of one plugin instance");
        return name ? std::vector<std::string>{*name} : std::vector<std::string>{};
    }
    std::vector<std::string> names;
    const auto* list = bind.array(key.name);
    for (std::size_t i = 0; list && i < list->size(); ++i) {
        const auto* name = (*list)[i].if_string();
        const auto path = bind.path_of(key.name) + "[" + std::to_string(i) + "]";
        if (!name) faults.add(path, wrong_value((*list)[i], "the name of a plugin instance"));
        else if (std::find(names.begin(), names.end(), std::string_view(*name)) != names.end())
            faults.add(path, "value \"" + std::string(*name) + "\" is listed twice, remove one");
        else names.emplace_back(*name);
    }
    return names;
}

void read_bind(object_reader& root, bind_settings& settings, fault_list& faults) {
    object_reader in(faults, value_or_absent(root.any("bind")), "bind");
    read_runtime(in, settings, faults);
    for (const auto& key : bind_keys()) {
        if (key.name == "runtime") continue;
        if (auto names = read_names(in, key, faults); !names.empty())
            settings.instances.emplace(std::string(key.name), std::move(names));
    }
    if (const auto* others = in.object("capabilities")) {
        object_reader each(faults, *in.any("capabilities"), "bind.capabilities");
        for (const auto& [id, instance] : *others)
            if (auto name = each.text(id)) settings.capabilities.emplace(id, std::move(*name));
    }
    in.finish();
}

void read_document(const json::value& document, parsed_config& parsed, const std::string& host_name) {
    auto& faults = parsed.faults;
    object_reader root(faults, document, "");
    const auto fixed = [&](std::string_view key, std::string_view only) {
        const auto* value = root.any(key);
        const auto* text = value ? value->if_string() : nullptr;
        if (!value) faults.add("", std::string(key) + " is missing, write \"" + std::string(key) + ": " + std::string(only) + "\"");
        else if (!text || std::string_view(*text) != only) faults.add(key, wrong_value(*value, only));
    };
    fixed("apiVersion", "gantry.dev/v1");
    fixed("kind", "NodeConfig");
    read_node(root, parsed.config.node, faults, host_name);
    read_plugins(root, parsed.config, faults);
    read_bind(root, parsed.config.bind, faults);
    root.finish();
}

} // namespace

parsed_config parse_node_config(std::string_view yaml, const std::string& file, const std::string& host_name) {
    auto documents = base::parse_yaml(yaml, file);
    if (!documents) { // its message has file and line already
        parsed_config parsed{.config = {}, .faults = fault_list(file, {})};
        parsed.faults.add_whole(documents.error().message);
        return parsed;
    }
    std::erase_if(*documents, [](const base::yaml_document& document) { return document.value.is_null(); });
    if (documents->size() != 1) {
        parsed_config parsed{.config = {}, .faults = fault_list(file, {})};
        parsed.faults.add("", "holds " + std::to_string(documents->size()) + " documents, write exactly one NodeConfig");
        return parsed;
    }
    parsed_config parsed{.config = {}, .faults = fault_list(file, std::move(documents->front().lines))};
    read_document(documents->front().value, parsed, host_name);
    return parsed;
}

} // namespace gantry::core
