// Arbitrary bytes as a plugin file: ELF headers, notes, descriptors.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "core/host/descriptor.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view bytes(reinterpret_cast<const char*>(data), size);
    const auto plugins = gantry::core::read_descriptors(bytes, "/p/a.so");
    if (!plugins && plugins.error().message.empty()) abort();
    return 0;
}
