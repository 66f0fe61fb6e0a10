// What /metrics says about plugins.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/host/instance.hpp"

namespace gantry::core {

/// gantry_op_* and gantry_instance_* for every instance, then gantry_plugin_NAME for what the plugins defined. [any]
std::string host_metrics_text(const std::vector<std::unique_ptr<instance>>& instances);

} // namespace gantry::core
