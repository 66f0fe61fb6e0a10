// The phase of a pod.
#pragma once

#include <string>

#include "gantry/model/pod.hpp"

namespace gantry::core {

/// From the container statuses in `status`. ending: the node is finishing the pod, so nothing will be restarted.
std::string compute_phase(const model::pod_spec& spec, const model::pod_status& status, bool ending);

inline bool is_terminal(const std::string& phase) { return phase == "Succeeded" || phase == "Failed"; }

const model::container_status* find_status(const std::vector<model::container_status>& list, const std::string& name);

/// True once a regular container has run or runs.
bool any_regular_started(const model::pod_spec& spec, const model::pod_status& status);

} // namespace gantry::core
