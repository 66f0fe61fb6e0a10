// The mounts of a container: the file systems every container has, the pod's files in /etc, and what the request lists.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "gantry/sdk/result.hpp"
#include "plugins/cri-native/launch/plan.hpp"
#include "proto/cri.pb.h"

namespace gantry::cri_native {

struct mount_facts {
    bool privileged = false;
    bool readonly_rootfs = false;
    bool host_ipc = false;
    std::string etc_dir{}; ///< the pod's hosts, hostname, resolv.conf lie here
};

/// Absolute, without "." and "..", doubled or trailing slashes; ".." stays below "/".
std::string clean_path(const std::string& path);

/// In order: /proc, /dev, /dev/pts, /dev/mqueue, /dev/shm, /sys, /sys/fs/cgroup, the pod's files, then the request's
/// mounts by host path. A mount of the request replaces one of ours with the same target. code::invalid names the
/// mount; its message starts with "RROUnsupported" where Kubernetes looks for that word. Pure. [any]
result<std::vector<launch::mount_plan>> container_mounts(const runtime::v1::ContainerConfig& config,
                                                         const mount_facts& facts);

} // namespace gantry::cri_native
