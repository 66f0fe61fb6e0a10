// What the API server would have filled in, and what it would have refused. Link target: gantry_model.
#pragma once

#include "errors.hpp"
#include "pod.hpp"

namespace gantry::model {

/// Fills in the defaults of the v1 API (restartPolicy, grace period, pull policy by tag, protocols, requests from limits).
/// Idempotent. [any]
void set_defaults(pod& object);

/// Every reason for which the API server would refuse this pod, as far as this version looks at its fields. Expects
/// defaults to be set. [any]
field_errors validate(const pod& object);

/// JSON text of one Pod to a pod with defaults; the error lists every fault with its path. [any]
result<pod> admit_pod(std::string_view json, std::string_view what);

} // namespace gantry::model
