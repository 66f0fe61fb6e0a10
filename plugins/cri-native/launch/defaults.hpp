// What every container gets unless its plan says otherwise (OCI runtime spec, "default filesystems" and "default
// devices").
#pragma once

#include <cstdint>
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

/// The capability's bit from its name ("NET_ADMIN" or "CAP_NET_ADMIN", any case); 0 for a name that is none.
std::uint64_t capability_bit(std::string_view name);
/// Docker's and containerd's default set.
std::uint64_t default_capabilities();
/// Every capability that this build knows by name.
std::uint64_t all_capabilities();

} // namespace gantry::cri_native::launch
