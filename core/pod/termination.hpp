// The last words of a container.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "gantry/model/pod.hpp"

namespace gantry::core {

inline constexpr std::size_t termination_message_limit = 4096;  ///< bytes of one container
inline constexpr std::size_t termination_messages_limit = 12288; ///< of all containers of a pod together
inline constexpr std::size_t termination_log_limit = 2048;
inline constexpr std::size_t termination_log_lines = 80;

/// Bytes that one container's message may have in this pod.
std::size_t message_limit(const model::pod_spec& spec);

/// The program's output at the end of a CRI log: at most the last 80 lines and 2048 bytes. A cut first record is left out.
std::string log_tail(std::string_view log);

/// What status shows of a container that ended: the runtime's words, then the program's.
std::string joined_message(std::string_view runtime, std::string_view program);

} // namespace gantry::core
