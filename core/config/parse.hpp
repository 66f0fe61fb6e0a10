// NodeConfig from YAML. Pure: judges the document alone; check.hpp goes on with the plugins it names.
#pragma once

#include <string>
#include <string_view>

#include "core/config/faults.hpp"
#include "core/config/node_config.hpp"

namespace gantry::core {

struct parsed_config {
    node_config config{};   ///< what could be read; complete only when there are no faults
    fault_list faults;      ///< every fault found so far; knows the line of every key
};

/// Parses one NodeConfig document. `file` is used in messages; `host_name` is node.name's default. [any]
parsed_config parse_node_config(std::string_view yaml, const std::string& file, const std::string& host_name);

} // namespace gantry::core
