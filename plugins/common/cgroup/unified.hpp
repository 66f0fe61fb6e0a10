// Groups of the cgroup2 hierarchy.
#pragma once

#include <chrono>
#include <string>

#include "gantry/sdk/result.hpp"
#include "plugins/common/cgroup/layout.hpp"

namespace gantry::cgroup {

/// mkdir -p of the group; where cgroup2 has resource controllers, every ancestor gets them enabled.
result<void> make_unified(const layout& l, const std::string& group);

/// Waits until `key` of the directory's cgroup.events is `value`; true at once when the directory is gone, false at the
/// deadline.
result<bool> wait_event(const std::string& directory, const std::string& key, std::uint64_t value,
                        std::chrono::steady_clock::time_point deadline);

} // namespace gantry::cgroup
