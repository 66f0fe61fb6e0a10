// Pods to CRI messages, and CRI messages to what decisions are made from.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/pod/dns.hpp"
#include "core/pod/env.hpp"
#include "core/pod/hosts.hpp"
#include "core/pod/runtime_view.hpp"
#include "gantry/model/pod.hpp"
#include "gantry/sdk/result.hpp"

namespace runtime::v1 {
class ContainerConfig;
class ContainerStatus;
class PodSandboxConfig;
class PodSandboxStatus;
} // namespace runtime::v1

namespace gantry::core {

/// What the image says about its user.
struct image_facts {
    std::string id;  ///< for CreateContainer
    std::string ref; ///< digest reference
    std::uint64_t size = 0;
    std::optional<std::int64_t> uid{};
    std::string username{};
};

/// The same for every container of a node.
struct machine_facts {
    std::int64_t memory_capacity = 0; ///< bytes
    int cgroup_version = 1;
    std::string seccomp_dir{};               ///< of localhostProfile
    std::vector<std::string> masked_paths{}; ///< beside the usual ones: those that exist on this machine only
};

struct container_facts {
    std::uint32_t attempt = 0;
    image_facts image{};
    env_facts env{};
    std::string hosts_path{};           ///< mounted at /etc/hosts unless the container mounts that itself
    std::string termination_log_path{}; ///< mounted at terminationMessagePath
};

/// Fails with code::invalid when the container may not run as the spec has it (CreateContainerConfigError).
result<void> fill_container_config(runtime::v1::ContainerConfig& out, const model::pod& pod, const model::container& c,
                                   const container_facts& facts, const machine_facts& machine);

struct sandbox_facts {
    std::uint32_t attempt = 0;
    std::string cgroup_parent{};
    std::string log_dir{}; ///< absolute, of this pod
    std::string hostname{};
    dns_config dns{};
};

void fill_sandbox_config(runtime::v1::PodSandboxConfig& out, const model::pod& pod, const sandbox_facts& facts);

container_view to_view(const runtime::v1::ContainerStatus& status);
sandbox_view to_view(const runtime::v1::PodSandboxStatus& status);

} // namespace gantry::core
