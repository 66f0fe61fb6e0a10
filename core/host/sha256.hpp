// SHA-256 (FIPS 180-4), for pinning and naming plugin libraries: the core links no cryptography library.
#pragma once

#include <string>
#include <string_view>

namespace gantry::core {

/// 64 lower-case hexadecimal digits.
std::string sha256_hex(std::string_view bytes);

} // namespace gantry::core
