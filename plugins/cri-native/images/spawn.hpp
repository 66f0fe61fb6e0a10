// How the store starts its helper: injected, so that a plugin uses the host's exec service and a test posix_spawn.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gantry/sdk/result.hpp"

namespace gantry::images {

struct spawn_request {
    std::vector<std::string> argv;                  ///< argv[0] is an absolute path
    std::vector<int> fds;                           ///< become 0, 1, 2, ...; borrowed until spawn returns
    std::chrono::steady_clock::time_point deadline; ///< the spawner may kill the process then; the store does too
};

/// A started helper. The destructor of one that was not waited for kills and reaps it.
class process {
public:
    virtual ~process() = default;
    /// Kills it if it still runs. [any]
    virtual void kill() = 0;
    /// Blocks until it has ended; wait status as of waitpid(2). Called once.
    virtual int wait() = 0;
};

using spawner = std::function<result<std::unique_ptr<process>>(const spawn_request&)>;

/// Starts with posix_spawn: an empty environment, default signals, no descriptor but those of the request.
spawner posix_spawner();

} // namespace gantry::images
