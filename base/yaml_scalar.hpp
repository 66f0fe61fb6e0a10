// The type of a YAML scalar, as a kubelet decides it.
#pragma once

#include <string_view>

#include "base/json.hpp"

namespace gantry::base {

/// Types a plain (unquoted) scalar the way sigs.k8s.io/yaml does, which reads manifests for every Kubernetes component:
/// YAML 1.1 booleans (y, yes, on, true, ... in three spellings each), integers with 0x, 0o, 0b and leading-zero octal
/// ("0644" is 420) and underscores, floats, null. Dates stay strings. Integral floats become integers, as JSON from Go
/// has them. NaN and infinities, which JSON cannot hold, are errors. Pure. [any]
result<json::value> resolve_plain_scalar(std::string_view text);

/// A scalar under an explicit core tag ("tag:yaml.org,2002:int"); an unknown tag, or a text that does not fit, is an
/// error. Pure. [any]
result<json::value> resolve_tagged_scalar(std::string_view tag, std::string_view text);

} // namespace gantry::base
