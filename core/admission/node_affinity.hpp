// nodeSelector and required node affinity, which the node checks once more after the scheduler.
#pragma once

#include <map>
#include <string>

#include "gantry/model/pod.hpp"

namespace gantry::core {

/// True when a node with these labels and this name may run the pod.
bool matches_node(const model::pod_spec& spec, const std::map<std::string, std::string>& labels,
                  const std::string& node_name);

} // namespace gantry::core
