// Judges a NodeConfig as a whole: the file, the plugins it names, their configuration and their bindings. This is all of
// `gantry config check`: it reads plugin files but runs no code of theirs.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/config/bind.hpp"
#include "core/config/node_config.hpp"
#include "core/config/parse.hpp"
#include "core/host/plugin_file.hpp"
#include "gantry/abi/plugin.h"
#include "gantry/sdk/result.hpp"

namespace gantry::core {

/// Where plugins come from.
struct plugin_sources {
    std::vector<std::string> dirs{};              ///< searched for `use:` names, in order
    std::vector<gantry_plugin_main_fn> builtin{}; ///< linked into this program, found first
};

/// EXE_DIR/../lib/gantry/plugins and the installed library directory.
std::vector<std::string> default_plugin_dirs();

/// The plugin that one entry of `plugins:` loads.
struct chosen_plugin {
    descriptor plugin{};
    std::uint32_t index = 0;                        ///< of the plugin in its library
    std::shared_ptr<plugin_file> file{};            ///< verified; its bytes go when the host has copied them. Null: built in
    gantry_plugin_main_fn builtin = nullptr;
};

struct checked_config {
    node_config config{};                 ///< plugin configurations with their defaults filled in
    std::vector<chosen_plugin> plugins{}; ///< same order as config.plugins
    bindings bound{};
    std::vector<std::string> warnings{};
};

/// The error is one line a fault: "FILE:LINE: key.path: what". [any, blocks]
result<checked_config> check_config(parsed_config parsed, const plugin_sources& sources);
result<checked_config> check_config_file(const std::string& path, const plugin_sources& sources);

} // namespace gantry::core
