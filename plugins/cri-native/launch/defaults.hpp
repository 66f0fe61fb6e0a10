// What every container gets unless its plan says otherwise (OCI runtime spec, "default filesystems" and "default
// devices").
#pragma once

#include <string>
#include <vector>

#include "plugins/cri-native/launch/plan.hpp"

namespace gantry::cri_native::launch {

/// /proc, /dev, /dev/pts, /dev/shm (the pod's), /dev/mqueue, /sys and /sys/fs/cgroup. Not privileged: /sys and the
/// cgroups are read-only.
std::vector<mount_plan> default_mounts(bool privileged);
/// null, zero, full, random, urandom, tty.
std::vector<device_plan> default_devices();
/// What an unprivileged container may not see or change in /proc and /sys.
std::vector<std::string> default_masked_paths();
std::vector<std::string> default_readonly_paths();

} // namespace gantry::cri_native::launch
