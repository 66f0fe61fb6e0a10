// What `gantry pods` and `gantry explain` say about a pod, as kubectl words it. Pure.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/json.hpp"

namespace gantry::core::cli {

/// NAMESPACE NAME READY STATUS RESTARTS AGE IP of a v1 Pod. STATUS is kubectl's: the most telling of deletion, waiting and
/// termination reasons, init progress, and phase.
std::vector<std::string> pod_row(const base::json::value& pod, std::chrono::system_clock::time_point now);

/// The STATUS column alone.
std::string pod_status_word(const base::json::value& pod);

} // namespace gantry::core::cli
