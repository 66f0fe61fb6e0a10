// Commands run in a container next to its first process.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "plugins/cri-native/supervisor/server.hpp"

namespace gantry::cri_native::supervisor {

struct container;

void start_exec(container& c, request& r, std::uint32_t handle, std::uint32_t flags) noexcept;
/// SIGKILL reaches the command's whole tree.
void signal_exec(std::uint32_t handle, int signal) noexcept;
void resize_exec(std::uint32_t handle, std::uint32_t columns, std::uint32_t rows) noexcept;
/// A child was reaped: true if it was an exec's.
bool exec_ended(pid_t pid, int code, int signal) noexcept;

std::int64_t execs_deadline() noexcept;
void expire_execs(std::int64_t now) noexcept;

} // namespace gantry::cri_native::supervisor
