// Restart policies: the pod's, and what single containers say instead.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/pod/runtime_view.hpp"
#include "gantry/model/pod.hpp"

namespace gantry::core {

enum class restart_policy : std::uint8_t { always, on_failure, never };

/// An init container that goes on running beside the others.
inline bool is_sidecar(const model::container& init) { return init.restart_policy == "Always"; }

restart_policy policy_of(const model::pod_spec& spec, const model::container& c);

/// Whether a container of this policy runs again after this exit. Init containers other than sidecars never run again
/// after they succeeded; that is the caller's to know.
bool restarts(restart_policy policy, std::int32_t exit_code);

/// True when a regular container or a sidecar has to be started: it never ran, or its last instance is gone and the policy
/// says again.
bool needs_start(const model::pod_spec& spec, const model::container& c, const container_view* newest);

} // namespace gantry::core
