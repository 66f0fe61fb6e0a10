// Work inside another network namespace.
#pragma once

#include <functional>

#include "gantry/sdk/result.hpp"

namespace gantry::netlink {

/// Runs fn on a thread made for this that enters `netns` and ends with fn, so no thread that serves anything else is
/// ever inside, or left inside, a pod. [any, blocks until fn has returned]
result<void> run_in_netns(int netns, const std::function<result<void>()>& fn);

} // namespace gantry::netlink
