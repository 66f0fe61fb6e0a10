// Sealed memory files: what is in them can never change again, whoever holds them.
#pragma once

#include <string_view>

#include "base/unique_fd.hpp"
#include "gantry/sdk/result.hpp"

namespace gantry::cri_native::launch {

enum class memfd_use { data, program };

result<base::unique_fd> make_sealed(const char* name, std::string_view bytes, memfd_use use);

} // namespace gantry::cri_native::launch
