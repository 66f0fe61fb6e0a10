// An OCI or Docker image config, reduced to the fields a node uses, with their types checked (image-spec config.md).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "gantry/sdk/result.hpp"

namespace gantry::cri_helper {

struct parsed_config {
    /// created, os, architecture, user, env, entrypoint, cmd, workingDir, stopSignal, volumes, exposedPorts, labels;
    /// all present, lists and maps possibly empty.
    base::json::object fields;
    std::vector<std::string> diff_ids;
};

result<parsed_config> parse_config(std::string_view text);

} // namespace gantry::cri_helper
