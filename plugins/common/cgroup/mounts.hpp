// A group's directories in every hierarchy of the machine.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "gantry/sdk/result.hpp"
#include "plugins/common/cgroup/layout.hpp"

namespace gantry::cgroup {

/// The group's directory in each hierarchy, the unified one first. They need not exist.
std::vector<std::string> directories(const layout& l, const std::string& group);

/// Names of the groups in a cgroup directory, sorted; empty when it does not exist.
result<std::vector<std::string>> subgroups(const std::string& directory);

/// Adds the processes of a cgroup directory and of all below; a directory that is gone adds nothing.
result<void> collect_processes(const std::string& directory, std::vector<pid_t>& out);

} // namespace gantry::cgroup
