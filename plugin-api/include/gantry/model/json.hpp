// Pods to and from JSON. Unknown members survive the round trip. Link target: gantry_model.
#pragma once

#include <string>

#include <boost/json/fwd.hpp>

#include "errors.hpp"
#include "pod.hpp"

namespace gantry::model {

/// Reads an object of kind Pod. Members of a wrong type and malformed quantities are added to errors with their path, and
/// stay empty in the result; everything else is read. [any]
pod pod_from_json(const boost::json::value& json, field_errors& errors);

/// The API's form: empty members are left out. [any]
boost::json::value to_json(const pod& object);
boost::json::value to_json(const pod_status& status);
boost::json::value to_json(const resource_requirements& resources);

/// Reads a status written by to_json; wrong members stay empty.
pod_status status_from_json(const boost::json::value& json);

} // namespace gantry::model
