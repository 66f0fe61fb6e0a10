// The error of a request that asks for something impossible, beside sys_error of the SDK.
#pragma once

#include <string>
#include <utility>

#include "gantry/sdk/result.hpp"

namespace gantry {

/// `message` says what was asked for, with its value, and what to do. [any]
inline error invalid(std::string message) { return {.code = code::invalid, .message = std::move(message)}; }

} // namespace gantry
