// The command line: parsing only; each verb is a function of commands.hpp.
#include <CLI/CLI.hpp>

#include "core/cli/commands.hpp"

namespace {

using namespace gantry::core::cli;

void add_common(CLI::App* verb, common_options& common, bool json, bool watch) {
    verb->add_option("--socket", common.socket, "Admin socket of the node")->capture_default_str();
    if (json)
        verb->add_option_function<std::string>(
            "-o,--output", [&common](const std::string& format) { common.json = format == "json"; },
            "Output format: text or json")
            ->check(CLI::IsMember({"text", "json"}));
    if (watch) verb->add_flag("-w,--watch", common.watch, "Follow changes");
}

} // namespace

int main(int argc, char** argv) {
    CLI::App app{"gantry: a Kubernetes worker node as a microkernel"};
    app.require_subcommand(1);
    app.set_version_flag("--version", std::string("gantry ") + GANTRY_VERSION);

    common_options common;
    app.add_option("--socket", common.socket, "Admin socket of the node; may also follow the verb")->capture_default_str();
    std::string file, name, level, ref;
    std::vector<std::string> refs;
    logs_options log;
    exec_options command;
    int exit_code = 0;
    const auto verb = [&](CLI::App* parent, const char* word, const char* help, auto run) {
        CLI::App* sub = parent->add_subcommand(word, help);
        sub->callback([&exit_code, run] { exit_code = run(); });
        return sub;
    };

    auto* run = verb(&app, "run", "Run the node", [&] { return run_node(file); });
    run->add_option("--config", file, "NodeConfig file")->required();

    auto* config = app.add_subcommand("config", "Work on a NodeConfig");
    config->require_subcommand(1);
    auto* check = verb(config, "check", "Say everything that is wrong with a NodeConfig", [&] { return config_check(common, file); });
    check->add_option("FILE", file, "NodeConfig file")->required();

    auto* pods_verb = verb(&app, "pods", "List pods, or show one", [&] { return pods(common, name); });
    pods_verb->add_option("NS/POD", name, "Only this pod");
    add_common(pods_verb, common, true, true);

    auto* events_verb = verb(&app, "events", "List events", [&] { return events(common, name); });
    events_verb->add_option("NS/POD", name, "Only of this pod");
    add_common(events_verb, common, true, true);

    add_common(verb(&app, "images", "List images", [&] { return images(common); }), common, true, false);
    add_common(verb(&app, "plugins", "List plugin instances", [&] { return plugins(common); }), common, true, false);

    auto* explain_verb = verb(&app, "explain", "What a pod went through and what it waits for", [&] { return explain(common, name); });
    explain_verb->add_option("NS/POD", name, "The pod")->required();
    add_common(explain_verb, common, true, false);

    auto* logs_verb = verb(&app, "logs", "Print a container's log", [&] { return logs(common, log); });
    logs_verb->add_option("NS/POD", log.pod, "The pod")->required();
    logs_verb->add_option("-c,--container", log.container, "Container; the first one if not given");
    logs_verb->add_flag("-f,--follow", log.follow, "Follow as it grows");
    logs_verb->add_flag("-p,--previous", log.previous, "Of the run before the current one");
    logs_verb->add_flag("--timestamps", log.timestamps, "Begin lines with their time");
    logs_verb->add_option("--tail", log.tail, "Only this many last lines")->check(CLI::NonNegativeNumber);
    logs_verb->add_option("--since", log.since, "Only newer than a duration (90s, 5m, 2h) or an RFC 3339 time");
    add_common(logs_verb, common, false, false);

    auto* exec_verb = verb(&app, "exec", "Run a command in a container", [&] { return exec(common, command); });
    exec_verb->add_option("NS/POD", command.pod, "The pod")->required();
    exec_verb->add_option("-c,--container", command.container, "Container; the first one if not given");
    exec_verb->add_flag("-i,--stdin", command.interactive, "Pass stdin to the command");
    exec_verb->add_flag("-t,--tty", command.tty, "Give the command a terminal");
    exec_verb->add_option("COMMAND", command.command, "Command and arguments, after --")->required();
    add_common(exec_verb, common, false, false);

    auto* image = app.add_subcommand("image", "Work on images");
    image->require_subcommand(1);
    auto* load = verb(image, "load", "Load a docker-archive or OCI-layout tar", [&] { return image_load(common, file, ref); });
    load->add_option("FILE", file, "The archive")->required();
    load->add_option("--ref", ref, "Name for an archive that carries none");
    add_common(load, common, false, false);
    auto* rm = verb(image, "rm", "Remove images that no container uses", [&] { return image_remove(common, refs); });
    rm->add_option("REF", refs, "Names, digests or ids")->required();
    add_common(rm, common, false, false);

    auto* plugin = app.add_subcommand("plugin", "Work on plugins");
    plugin->require_subcommand(1);
    auto* inspect = verb(plugin, "inspect", "Print a plugin file's descriptor without running its code",
                         [&] { return plugin_inspect(common, file); });
    inspect->add_option("FILE", file, "The .so")->required();
    inspect->add_option_function<std::string>(
        "-o,--output", [&](const std::string& format) { common.json = format == "json"; }, "Output format: text or json")
        ->check(CLI::IsMember({"text", "json"}));
    auto* enable = verb(plugin, "enable", "Lift a plugin's quarantine", [&] { return plugin_enable(common, name); });
    enable->add_option("NAME", name, "Plugin instance")->required();
    add_common(enable, common, false, false);

    auto* level_verb = verb(&app, "log-level", "Set a plugin's log level", [&] { return log_level(common, name, level); });
    level_verb->add_option("PLUGIN", name, "Plugin instance, or `core`")->required();
    level_verb->add_option("LEVEL", level, "debug, info, warn or error")->required()->check(CLI::IsMember({"debug", "info", "warn", "error"}));
    add_common(level_verb, common, false, false);

    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& e) {
        return app.exit(e) == 0 ? 0 : 2;
    }
    return exit_code;
}
