// Reads of JSON answers that may lack anything.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/json.hpp"

namespace gantry::core::cli {

/// The value at "status.podIP"; nullptr if any step is missing. Keys with dots cannot be reached.
const base::json::value* find(const base::json::value& root, std::string_view path);
/// Its text: strings as they are, numbers and booleans printed, anything else `fallback`.
std::string text_at(const base::json::value& root, std::string_view path, std::string_view fallback = "");
std::int64_t number_at(const base::json::value& root, std::string_view path, std::int64_t fallback = 0);
/// The array there, or an empty one.
const base::json::array& array_at(const base::json::value& root, std::string_view path);

} // namespace gantry::core::cli
