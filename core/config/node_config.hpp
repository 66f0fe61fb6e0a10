// NodeConfig (gantry.dev/v1) as plain structs: what one node runs, and how its plugins are bound.
// parse.hpp makes it from YAML, check.hpp judges it against the descriptors of the plugins it names.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "core/log/level.hpp"

namespace gantry::core {

struct node_settings {
    std::string name{};                          ///< of the Node object; default: the host name
    std::string instance = "main";               ///< every kernel object and directory derives from it
    std::string state_dir = "/var/lib/gantry";   ///< survives reboots; the node's part is STATE_DIR/INSTANCE
    std::string run_dir = "/run/gantry";         ///< tmpfs; the node's part is RUN_DIR/INSTANCE
    std::string socket{};                        ///< default: RUN_DIR/gantry.sock (main), else RUN_DIR/INSTANCE/gantry.sock
    std::string pod_logs_dir = "/var/log/pods";
    core::log_format log_format = core::log_format::text;
    core::log_level log_level = core::log_level::info;

    std::string state_root() const { return state_dir + "/" + instance; }
    std::string run_root() const { return run_dir + "/" + instance; }
};

struct plugin_limits {
    int max_concurrency = 0;                       ///< ops open at once; 0: what the descriptor says
    std::chrono::milliseconds lane_stall{10'000};  ///< a call on the lane that lasts longer marks the instance as hung
    std::chrono::milliseconds grace{2'000};        ///< how long a cancelled op may take to complete before it is abandoned
};

/// One entry of `plugins:`.
struct plugin_settings {
    std::string name{};       ///< instance name, unique on the node
    std::string use{};        ///< `name` of the plugin's descriptor
    std::string path{};       ///< absolute path of the library, or empty: looked up in the plugin directories
    std::string sha256{};     ///< lower-case hex, or empty: not pinned
    base::json::object config{};///< as written; check.hpp fills in the schema's defaults
    plugin_limits limits{};
};

/// `bind:`, as written. Keys other than runtime and capabilities hold instance names, in order.
struct bind_settings {
    std::string runtime_default{};
    std::map<std::string, std::string> runtime_handlers{};          ///< RuntimeClass handler -> instance
    std::map<std::string, std::vector<std::string>> instances{};    ///< "network", "resources", "podSources", ... -> instances
    std::map<std::string, std::string> capabilities{};              ///< vendor capability id -> instance
};

struct node_config {
    node_settings node{};
    std::vector<plugin_settings> plugins{};
    bind_settings bind{};
};

} // namespace gantry::core
