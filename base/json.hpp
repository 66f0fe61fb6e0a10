// JSON: Boost.JSON, compiled once into base (base/json.cpp) with hidden symbols.
#pragma once

#include <string>
#include <string_view>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/string.hpp>
#include <boost/json/value.hpp>

#include "gantry/sdk/result.hpp"

namespace gantry::base {

namespace json = boost::json;

/// Parses one JSON document; the error names `what` and the byte offset. Depth is limited to 64. [any]
result<json::value> parse_json(std::string_view text, std::string_view what);

/// The string that `object` has under `key`; empty if it has none.
std::string string_at(const json::object& object, std::string_view key);

/// One-line JSON.
std::string to_text(const json::value& value);

/// Indented JSON for people and `-o json`.
std::string to_pretty(const json::value& value);

} // namespace gantry::base
