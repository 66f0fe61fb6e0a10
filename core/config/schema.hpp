// The subset of JSON Schema in which a plugin describes its configuration: type, properties, required,
// additionalProperties, enum, items, minimum, maximum, pattern, default; title and description are for people. Pure functions.
#pragma once

#include <string>
#include <vector>

#include "base/json.hpp"

namespace gantry::core {

struct schema_fault {
    std::string path{}; ///< below the document: "registries[0].match", or empty for the document itself
    std::string what{}; ///< "value ..., allowed ..., what to do"
};

/// Faults of a schema itself: keywords outside the subset, wrong types, patterns that do not compile.
std::vector<schema_fault> check_schema(const base::json::object& schema);

/// Fills the defaults of absent properties in, then returns every fault of the value. The schema passed check_schema().
std::vector<schema_fault> apply_schema(const base::json::object& schema, base::json::value& value);

} // namespace gantry::core
