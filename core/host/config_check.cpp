#include "core/host/config_check.hpp"

#include <limits.h>
#include <unistd.h>

#include <algorithm>
#include <map>

#include "base/files.hpp"
#include "core/config/schema.hpp"
#include "core/config/suggest.hpp"

namespace gantry::core {

namespace json = base::json;

namespace {

std::string host_name() {
    char name[HOST_NAME_MAX + 1] = {};
    return ::gethostname(name, sizeof name - 1) == 0 ? name : "localhost";
}

std::string entry_path(std::size_t i) { return "plugins[" + std::to_string(i) + "]"; }

class checker {
public:
    checker(parsed_config& parsed, const plugin_sources& sources)
        : config_(parsed.config), faults_(parsed.faults), sources_(sources), catalogue_(scan_plugin_dirs(sources.dirs)) {}

    checked_config run() {
        checked_config out;
        read_builtin();
        for (std::size_t i = 0; i < config_.plugins.size(); ++i) out.plugins.push_back(choose(i));
        check_ids(out.plugins);
        for (std::size_t i = 0; i < config_.plugins.size(); ++i)
            if (!out.plugins[i].plugin.id.empty()) check_plugin_config(i, out.plugins[i].plugin);
        const auto missing = [](const chosen_plugin& one) { return one.plugin.id.empty(); };
        if (std::none_of(out.plugins.begin(), out.plugins.end(), missing)) { // else every binding would be a fault as well
            out.bound = resolve_bindings(config_.bind, offers(out.plugins), faults_);
            out.warnings = out.bound.warnings;
        }
        return out;
    }

private:
    void read_builtin() {
        for (const auto main : sources_.builtin) {
            const auto* entry = main();
            for (std::uint32_t i = 0; i < entry->plugin_count; ++i) {
                const auto* header = entry->descriptor(i);
                const plugin_note note{.abi_major = header->abi_major,
                                       .abi_minor = header->abi_minor,
                                       .needs_minor = header->needs_minor,
                                       .json = {reinterpret_cast<const char*>(header + 1), header->json_size}};
                auto parsed = parse_descriptor(note, "built-in plugin");
                if (!parsed) faults_.add("plugins", parsed.error().message);
                else builtin_.push_back({.plugin = *std::move(parsed), .index = i, .file = {}, .builtin = main});
            }
        }
    }

    chosen_plugin choose(std::size_t i) {
        const auto& settings = config_.plugins[i];
        if (settings.use.empty()) return {}; // reported by the parser
        if (settings.path.empty()) {
            for (const auto& one : builtin_)
                if (one.plugin.name == settings.use) return one;
        }
        const auto path = settings.path.empty() ? find(i) : settings.path;
        return path.empty() ? chosen_plugin{} : open(i, path);
    }

    std::string find(std::size_t i) {
        const auto& use = config_.plugins[i].use;
        if (const auto* found = catalogue_.find(use)) return found->path;
        auto known = catalogue_.names();
        for (const auto& one : builtin_) known.push_back(one.plugin.name);
        std::string what = "value \"" + use + "\" is no known plugin, allowed " + (known.empty() ? "none" : join(known)) +
                           did_you_mean(use, known) + ": looked in " + join(sources_.dirs) + ", or give its file by `path:`";
        for (const auto& reason : catalogue_.refused)
            if (reason.find("/" + use + ".so") != std::string::npos) what += "; " + reason;
        faults_.add(entry_path(i) + ".use", what);
        return {};
    }

    chosen_plugin open(std::size_t i, const std::string& path) {
        const auto& settings = config_.plugins[i];
        const std::string key = entry_path(i) + (settings.path.empty() ? ".use" : ".path");
        auto& file = files_[path];
        if (!file) {
            auto opened = open_plugin_file(path);
            if (!opened) {
                faults_.add(key, opened.error().message);
                return {};
            }
            file = std::make_shared<plugin_file>(*std::move(opened));
        }
        if (!settings.sha256.empty() && settings.sha256 != file->sha256) {
            faults_.add(entry_path(i) + ".sha256", "value \"" + settings.sha256 + "\", " + file->path + " has \"" + file->sha256 +
                                                       "\": install the file that was pinned, or pin the new one");
            return {};
        }
        std::vector<std::string> names;
        for (std::uint32_t n = 0; n < file->plugins.size(); ++n) {
            const auto& one = file->plugins[n];
            if (one.name == settings.use || one.id == settings.use) return {.plugin = one, .index = n, .file = file, .builtin = nullptr};
            names.push_back(one.name);
        }
        faults_.add(entry_path(i) + ".use", "value \"" + settings.use + "\" is not in " + file->path + ", allowed " + join(names) +
                                                did_you_mean(settings.use, names));
        return {};
    }

    void check_ids(const std::vector<chosen_plugin>& plugins) {
        std::map<std::string, std::string> paths;
        for (std::size_t i = 0; i < plugins.size(); ++i) {
            if (!plugins[i].file) continue;
            const auto& path = plugins[i].file->path;
            const auto [first, fresh] = paths.emplace(plugins[i].plugin.id, path);
            if (!fresh && first->second != path)
                faults_.add(entry_path(i), "plugin \"" + plugins[i].plugin.id + "\" comes from two files, " + first->second + " and " +
                                               path + ": use one of them");
        }
    }

    void check_plugin_config(std::size_t i, const descriptor& plugin) {
        json::value value = config_.plugins[i].config;
        if (plugin.config.empty() && !config_.plugins[i].config.empty())
            faults_.add(entry_path(i) + ".config", "value " + base::to_text(value) + ", \"" + plugin.name + "\" takes no configuration: remove it");
        for (const auto& fault : apply_schema(plugin.config, value)) {
            const auto separator = fault.path.empty() || fault.path.front() == '[' ? "" : ".";
            faults_.add(entry_path(i) + ".config" + separator + fault.path, fault.what);
        }
        if (auto* object = value.if_object()) config_.plugins[i].config = std::move(*object);
    }

    std::vector<plugin_offer> offers(const std::vector<chosen_plugin>& plugins) const {
        std::vector<plugin_offer> offers;
        for (std::size_t i = 0; i < plugins.size(); ++i)
            offers.push_back({.name = config_.plugins[i].name,
                              .capabilities = plugins[i].plugin.capabilities,
                              .peers = plugins[i].plugin.peers,
                              .owns_network = plugins[i].plugin.has_trait("owns-network")});
        return offers;
    }

    node_config& config_;
    fault_list& faults_;
    const plugin_sources& sources_;
    plugin_catalogue catalogue_;
    std::vector<chosen_plugin> builtin_;
    std::map<std::string, std::shared_ptr<plugin_file>> files_;
};

} // namespace

std::vector<std::string> default_plugin_dirs() {
    std::vector<std::string> dirs;
    char exe[PATH_MAX];
    const ssize_t n = ::readlink("/proc/self/exe", exe, sizeof exe);
    const auto add = [&](const std::string& dir) {
        if (std::find(dirs.begin(), dirs.end(), dir) == dirs.end()) dirs.push_back(dir);
    };
    if (n > 0) {
        const std::string path(exe, static_cast<std::size_t>(n));
        const auto bin = path.substr(0, path.rfind('/'));
        add(bin.substr(0, bin.rfind('/')) + "/lib/gantry/plugins");
    }
    add(GANTRY_PLUGIN_DIR);
    return dirs;
}

result<checked_config> check_config(parsed_config parsed, const plugin_sources& sources) {
    auto checked = checker(parsed, sources).run();
    GANTRY_CHECK(parsed.faults.verdict());
    checked.config = std::move(parsed.config);
    return checked;
}

result<checked_config> check_config_file(const std::string& path, const plugin_sources& sources) {
    GANTRY_TRY(const auto text, base::read_file(path, 10u << 20));
    return check_config(parse_node_config(text, path, host_name()), sources);
}

} // namespace gantry::core
