// Starting a supervisor process and finding the socket of one.
#pragma once

#include <string>

#include "base/unique_fd.hpp"
#include "gantry/sdk/result.hpp"
#include "plugins/cri-native/launch/plan.hpp"
#include "plugins/cri-native/launch/vfork_exec.hpp"

namespace gantry::cri_native::launch {

inline constexpr const char* socket_name = "supervisor.sock";

/// Listens on RUN_DIR/supervisor.sock (0600) and runs the image with that socket, the run directory and the plan. The
/// child belongs to the caller, which reaps it by pid. [any, blocks for one vfork]
result<spawned> spawn_supervisor(int image, const sandbox_plan& plan);

/// Connects without blocking; the path may be longer than a socket address. code::unavailable when nobody listens.
result<base::unique_fd> connect_supervisor(const std::string& run_dir);

} // namespace gantry::cri_native::launch
