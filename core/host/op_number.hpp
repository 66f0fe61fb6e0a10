// Numbers of operations: generation (32 bits), instance (12), slot (20). The generation of a slot grows with each use, so a
// number that a plugin kept for too long is told from the one that is open now. Never 0.
#pragma once

#include <cstdint>

#include "gantry/abi/op.h"

namespace gantry::core {

inline constexpr std::uint32_t most_slots = 1u << 20;

constexpr gantry_op make_op_number(std::uint32_t generation, std::uint32_t instance, std::uint32_t slot) {
    return gantry_op{generation} << 32 | instance << 20 | slot;
}
constexpr std::uint32_t slot_of(gantry_op op) { return static_cast<std::uint32_t>(op) & (most_slots - 1); }
constexpr std::uint32_t instance_of(gantry_op op) { return static_cast<std::uint32_t>(op) >> 20; }
constexpr std::uint32_t generation_of(gantry_op op) { return static_cast<std::uint32_t>(op >> 32); }

} // namespace gantry::core
