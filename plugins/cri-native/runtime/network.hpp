// The pod's end of the network plugin: CNI requests and results.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "gantry/sdk/result.hpp"
#include "proto/cri.pb.h"

namespace gantry::cri_native {

/// The request of ADD and DEL for a sandbox (abi/draft/network.h): K8S_POD_* arguments and the published ports. Pure.
/// [any]
std::string network_request(const std::string& sandbox_id, const runtime::v1::PodSandboxConfig& config);

/// The pod's addresses in the result of ADD (CNI 1.1.0 section 5), without prefix lengths. Those of interfaces outside
/// the sandbox are left out. code::internal when there is none. Pure. [any]
result<std::vector<std::string>> addresses_of(std::string_view cni_result);

} // namespace gantry::cri_native
