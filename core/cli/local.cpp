// The verbs that need no running node.
#include <cstdio>

#include "base/json.hpp"
#include "core/cli/commands.hpp"
#include "core/cli/json_path.hpp"
#include "core/cli/table.hpp"
#include "core/host/config_check.hpp"
#include "core/host/descriptor.hpp"
#include "core/run/run.hpp"

namespace gantry::core::cli {

namespace {

int fail(const error& e) {
    std::fprintf(stderr, "gantry: %s\n", e.message.c_str());
    return 1;
}

void print_descriptor(const base::json::value& plugin) {
    std::vector<std::vector<std::string>> rows;
    for (const char* key : {"file", "sha256", "id", "name", "version", "vendor", "license", "url", "description"})
        if (auto text = text_at(plugin, key); !text.empty()) rows.push_back({key, text});
    rows.push_back({"abi", text_at(plugin, "abi.major") + "." + text_at(plugin, "abi.minor") + ", needs minor " +
                               text_at(plugin, "abi.needsMinor", "0")});
    for (const char* key : {"capabilities", "requires", "services"})
        for (const auto& id : array_at(plugin, key)) rows.push_back({key, id.is_string() ? std::string(id.get_string()) : base::to_text(id)});
    std::fputs(render_table(rows).c_str(), stdout);
    if (const auto* schema = find(plugin, "config")) std::printf("config schema\n%s\n", base::to_pretty(*schema).c_str());
}

result<checked_config> check(const std::string& file) {
    return check_config_file(file, {.dirs = default_plugin_dirs(), .builtin = {}});
}

} // namespace

int plugin_inspect(const common_options& common, const std::string& file) {
    auto plugins = inspect_plugin(file);
    if (!plugins) return fail(plugins.error());
    if (common.json) {
        std::printf("%s\n", base::to_pretty(*plugins).c_str());
        return 0;
    }
    for (const auto& plugin : array_at(*plugins, "")) print_descriptor(plugin);
    return 0;
}

int config_check(const common_options&, const std::string& file) {
    auto checked = check(file);
    if (!checked) {
        std::fprintf(stderr, "%s\n", checked.error().message.c_str());
        return 1;
    }
    for (const auto& warning : checked->warnings) std::fprintf(stderr, "warning: %s\n", warning.c_str());
    std::printf("%s: ok\n", file.c_str());
    return 0;
}

int run_node(const std::string& config_file) {
    auto checked = check(config_file);
    if (!checked) {
        std::fprintf(stderr, "%s\n", checked.error().message.c_str());
        return 1;
    }
    auto ran = run(*std::move(checked));
    return ran ? 0 : fail(ran.error());
}

} // namespace gantry::core::cli
