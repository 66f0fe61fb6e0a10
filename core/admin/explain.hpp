// `gantry explain`: a pod's steps and what it waits for, as JSON for the CLI. Pure.
#pragma once

#include <vector>

#include "base/json.hpp"
#include "core/host/journal.hpp"
#include "core/kernel/views.hpp"

namespace gantry::core::admin {

/// {summary, next, steps: [{time, op, plugin, took, outcome}], events}. The first line, summary, says what the pod is and
/// the one thing it waits for.
base::json::object explain_answer(const pod_explanation& pod, const std::vector<op_step>& steps, wall_time now);

/// A v1 Event.
base::json::object event_object(const kube_event& event);

} // namespace gantry::core::admin
