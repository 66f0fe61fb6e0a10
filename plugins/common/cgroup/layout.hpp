// Which cgroup hierarchies this machine has and where they are mounted: read from mountinfo, never assumed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "gantry/sdk/result.hpp"

namespace gantry::cgroup {

enum class version { v1 = 1, v2 = 2 };

/// One v1 hierarchy: a set of controllers, or a name ("name=systemd"), and its mount point.
struct v1_mount {
    std::vector<std::string> controllers;
    std::string point;
    bool operator==(const v1_mount&) const = default;
};

/// v2: `unified` alone. v1: `v1` mounts, and in hybrid mode `unified` too, which then has no resource controllers but
/// still kills, freezes and tells of the last exit.
struct layout {
    std::vector<v1_mount> v1;
    std::string unified;                            ///< mount point of cgroup2, or empty
    std::vector<std::string> unified_controllers{}; ///< what cgroup2 can enable

    /// v1 when any resource controller is bound to a v1 hierarchy.
    cgroup::version version() const { return v1.empty() ? version::v2 : version::v1; }
    /// Mount point of a controller, empty when the machine lacks it.
    std::string mount_of(std::string_view controller) const;
};

/// Reads a mountinfo text. Each v1 hierarchy once, the first mount of it that shows its whole tree; unified_controllers
/// stays empty. Pure. [any]
layout parse_mountinfo(std::string_view mountinfo);

/// The layout of the calling process's mount namespace; an error when no cgroup file system is mounted. [worker]
result<layout> detect();

} // namespace gantry::cgroup
