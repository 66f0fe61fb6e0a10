// The error of a request that asks for something impossible.
#pragma once

#include <string>
#include <utility>

#include "gantry/sdk/result.hpp"

namespace gantry::cri_native {

inline error invalid(std::string message) { return {.code = code::invalid, .message = std::move(message)}; }

} // namespace gantry::cri_native
