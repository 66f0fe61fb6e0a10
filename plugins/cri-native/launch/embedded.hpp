// The supervisor program's bytes, inside this library.
#pragma once

#include <string_view>

namespace gantry::cri_native::launch {

std::string_view embedded_supervisor() noexcept;

} // namespace gantry::cri_native::launch
