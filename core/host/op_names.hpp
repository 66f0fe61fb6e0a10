// Where the operations of a capability lie in its table, by their member names: peers are called by name.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace gantry::core {

/// The offset of member `op` in the table of `capability`, for the capabilities whose headers this build has.
std::optional<std::size_t> offset_of_op(std::string_view capability, std::string_view op) noexcept;

} // namespace gantry::core
