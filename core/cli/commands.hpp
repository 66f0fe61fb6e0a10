// The verbs that talk to a running node. Each prints its result on stdout, its errors on stderr, and returns the exit
// code: 0 done, 1 failed, 2 usage.
#pragma once

#include <string>
#include <vector>

namespace gantry::core::cli {

struct common_options {
    std::string socket = "/run/gantry/gantry.sock";
    bool json = false;  ///< -o json
    bool watch = false; ///< -w
};

struct pod_name {
    std::string namespace_;
    std::string name;
};

/// "NS/POD", or "POD" for namespace default. False for anything else.
bool parse_pod_name(const std::string& text, pod_name& out);

struct logs_options {
    std::string pod;
    std::string container;
    bool follow = false;
    bool previous = false;
    bool timestamps = false;
    long tail = -1;
    std::string since; ///< RFC 3339 or a duration such as 5m
};

struct exec_options {
    std::string pod;
    std::string container;
    bool interactive = false;
    bool tty = false;
    std::vector<std::string> command;
};

int pods(const common_options& common, const std::string& pod);
int events(const common_options& common, const std::string& pod);
int images(const common_options& common);
int plugins(const common_options& common);
int explain(const common_options& common, const std::string& pod);
int logs(const common_options& common, const logs_options& options);
int exec(const common_options& common, const exec_options& options);
int image_load(const common_options& common, const std::string& file, const std::string& ref);
int image_remove(const common_options& common, const std::vector<std::string>& refs);
int plugin_enable(const common_options& common, const std::string& name);
int log_level(const common_options& common, const std::string& plugin, const std::string& level);

/// No node needed.
int plugin_inspect(const common_options& common, const std::string& file);
int config_check(const common_options& common, const std::string& file);
int run_node(const std::string& config_file);

} // namespace gantry::core::cli
