// The conditions of a pod that the node owns, with the kubelet's reasons and messages.
#pragma once

#include <vector>

#include "gantry/model/pod.hpp"

namespace gantry::core {

/// From phase and container statuses in `status`. sandbox_ready: a sandbox with its network exists. Conditions of others
/// and the transition times of unchanged ones come from `before` (may be null); `now` is RFC 3339 text.
std::vector<model::pod_condition> make_conditions(const model::pod& pod, const model::pod_status& status,
                                                  bool sandbox_ready, const model::pod_status* before,
                                                  const std::string& now);

} // namespace gantry::core
