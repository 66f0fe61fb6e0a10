// YAML 1.2 documents as JSON values, with the line of every node.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"

namespace gantry::base {

struct yaml_document {
    json::value value;                ///< null for an empty document
    std::map<std::string, int> lines; ///< path ("plugins[1].use") -> 1-based line of its key or item
};

/// All documents of a stream. Scalars follow YAML's core schema (plain true/false/null/int/float; quoted = string), as
/// Kubernetes reads them. Bounded: 10 MB, depth 64, 200,000 nodes after alias expansion; duplicate keys, merge keys
/// and non-string keys that JSON cannot hold are errors. Errors read "FILE:LINE: what". [any]
result<std::vector<yaml_document>> parse_yaml(std::string_view text, std::string_view file);

} // namespace gantry::base
