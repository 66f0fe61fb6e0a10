// Reads the notes that GANTRY_DESCRIPTOR wrote into a library, from its bytes alone: nothing of it is mapped or run.
// Format: gantry/abi/plugin.h; ELF64 little endian, notes found through the PT_NOTE program headers (System V gABI, ch. 5).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gantry/sdk/result.hpp"

namespace gantry::core {

struct plugin_note {
    std::uint16_t abi_major = 0;
    std::uint16_t abi_minor = 0;
    std::uint16_t needs_minor = 0;
    std::string json{}; ///< as it stands in the note
};

/// The notes in the order of the file, at least one. Every offset is checked; work is bounded by the size of `elf`.
/// Errors name `file` and say what is wrong with it. [any]
result<std::vector<plugin_note>> read_plugin_notes(std::string_view elf, const std::string& file);

} // namespace gantry::core
