// YAML documents as JSON values, with the line of every node.
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

/// All documents of a stream. Plain scalars are typed as a kubelet types them (base/yaml_scalar.hpp), quoted ones are
/// strings; keys are taken as written; merge keys (<<) are applied. Bounded: 10 MB, depth 64, 200,000 nodes and 32 MB
/// after alias expansion, keys of 1024 bytes. Duplicate keys, control characters, text that is not UTF-8 and values
/// that JSON cannot hold are errors. Errors read "FILE:LINE: what". Lines inside what an alias stands for are those of
/// the alias. [any]
result<std::vector<yaml_document>> parse_yaml(std::string_view text, std::string_view file);

} // namespace gantry::base
