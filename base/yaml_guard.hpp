// What is refused before the YAML parser sees a byte.
#pragma once

#include <string_view>

#include "gantry/sdk/result.hpp"

namespace gantry::base {

constexpr std::size_t yaml_byte_limit = 10u << 20;
constexpr std::size_t yaml_node_limit = 200'000;

/// One pass over the raw text: size, UTF-8, control characters, and what would make the parser hold one line's tokens
/// in memory at once (it decides whether a flow collection is a key only at the end of the line). [any]
result<void> check_yaml_text(std::string_view text, std::string_view file);

} // namespace gantry::base
