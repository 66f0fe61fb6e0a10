// CRI's resource message as cgroup limits.
#pragma once

#include <cstdint>

#include "gantry/sdk/result.hpp"
#include "plugins/common/cgroup/limits.hpp"
#include "proto/cri.pb.h"

namespace gantry::cri_native {

/// A process needs some memory before its program's first instruction; below this the kernel would kill it on the way
/// there, and the container would look as if the program had failed.
constexpr std::int64_t lowest_memory_limit = 512 << 10; // bytes

/// 0 and empty mean "leave it" (CRI). A memory limit without a limit for swap forbids swap, so that a pod's memory is
/// what it asked for. code::invalid names the field. Pure. [any]
result<cgroup::limits> cgroup_limits(const runtime::v1::LinuxContainerResources& resources);

/// Lays an update over what a container has: fields that are 0 or empty keep the old value. Pure. [any]
runtime::v1::LinuxContainerResources merged_resources(const runtime::v1::LinuxContainerResources& present,
                                                      const runtime::v1::LinuxContainerResources& update);

} // namespace gantry::cri_native
