// One process per node.instance: a lock that the kernel drops when the process ends, however it ends.
#pragma once

#include <string>

#include "base/unique_fd.hpp"
#include "gantry/sdk/result.hpp"

namespace gantry::core {

/// Locks RUN_ROOT/lock (made when missing). code::exists names the process that holds it.
result<base::unique_fd> lock_instance(const std::string& run_root);

} // namespace gantry::core
