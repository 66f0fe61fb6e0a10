// From a CRI sandbox request to the supervisor's plan.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gantry/sdk/result.hpp"
#include "plugins/cri-native/launch/plan.hpp"
#include "plugins/cri-native/runtime/store/record.pb.h"
#include "proto/cri.pb.h"

namespace gantry::cri_native {

/// "namespace/name (uid) attempt N": what may exist once.
std::string sandbox_name(const runtime::v1::PodSandboxMetadata& metadata);

/// code::invalid for what is missing or malformed, code::unsupported for what cri-native lacks. Pure. [any]
result<void> check_sandbox(const runtime::v1::RunPodSandboxRequest& request);

/// Pure. [any]
launch::sandbox_plan sandbox_plan_of(const store::SandboxRecord& record, std::string run_dir, std::uint64_t shm_bytes,
                                     launch::supervisor_cgroup supervisor_cgroup);

} // namespace gantry::cri_native
