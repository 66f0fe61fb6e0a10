// Device nodes of a container and the cgroup's device policy.
#pragma once

#include <string>
#include <vector>

#include "gantry/sdk/result.hpp"
#include "plugins/common/cgroup/devices.hpp"
#include "plugins/cri-native/launch/plan.hpp"
#include "proto/cri.pb.h"

namespace gantry::cri_native {

/// A device node as found on the node. [data only]
struct found_device {
    launch::device_plan node; ///< path: in the container
    std::string access = "rwm";
};

/// Looks up what the request lists; a host_path that is a directory stands for every device node in it. code::invalid
/// names the field for a path that is no device or for permissions other than r, w, m. [worker]
result<std::vector<found_device>> find_devices(const runtime::v1::ContainerConfig& config);

/// Every device node below /dev but terminals, pts, shm and mqueue, for privileged containers. [worker]
result<std::vector<found_device>> all_host_devices();

/// Denies all but: making any node, the default devices, terminals of the container's own devpts, and `devices`. With
/// `privileged` everything is allowed. Pure. [any]
std::vector<cgroup::device_rule> device_rules(bool privileged, const std::vector<found_device>& devices);

} // namespace gantry::cri_native
