#include "plugins/cri-native/launch/embedded.hpp"

asm(".section .rodata\n"
    ".balign 16\n"
    ".hidden gantry_supervisor_begin\n"
    ".hidden gantry_supervisor_end\n"
    ".global gantry_supervisor_begin\n"
    ".global gantry_supervisor_end\n"
    "gantry_supervisor_begin:\n"
    ".incbin \"" GANTRY_SUPERVISOR_FILE "\"\n"
    "gantry_supervisor_end:\n"
    ".byte 0\n"
    ".text\n");

extern "C" {
extern const char gantry_supervisor_begin[];
extern const char gantry_supervisor_end[];
}

namespace gantry::cri_native::launch {

std::string_view embedded_supervisor() noexcept {
    return {gantry_supervisor_begin, static_cast<std::size_t>(gantry_supervisor_end - gantry_supervisor_begin)};
}

} // namespace gantry::cri_native::launch
