// From a CRI request and an image to the plan that the launcher executes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gantry/sdk/result.hpp"
#include "plugins/cri-native/images/image.hpp"
#include "plugins/cri-native/launch/plan.hpp"
#include "plugins/cri-native/runtime/spec/devices.hpp"
#include "plugins/cri-native/runtime/spec/user.hpp"
#include "proto/cri.pb.h"

namespace gantry::cri_native {

/// What does not come from the request: the node, the pod, and what was looked up.
struct container_facts {
    std::string id{};
    std::string hostname{};
    std::string etc_dir{}; ///< the pod's hosts, hostname, resolv.conf
    std::string log_path{};
    bool host_ipc = false;
    bool shared_pid = false;                  ///< the pod has one PID namespace
    std::uint64_t available_capabilities = 0; ///< the node's bounding set
    std::uint64_t open_files = 0;             ///< RLIMIT_NOFILE of the container; 0 leaves the launcher's
    int lowest_oom_score = -1000;             ///< what oom_score_adj can be set to at least
    identity who{};
    std::vector<std::uint8_t> seccomp{};
    std::vector<found_device> devices{}; ///< beside the default ones
    std::string upper{};                 ///< directories of the writable layer
    std::string work{};
    bool user_xattr = false; ///< of the image store
    launch::cgroup_plan cgroup{};
};

/// code::unsupported, naming the field, for what cri-native would have to leave out silently. Pure. [any]
result<void> check_container(const runtime::v1::ContainerConfig& config);

bool is_privileged(const runtime::v1::ContainerConfig& config);

/// Whether the pod has one PID namespace for all its containers.
bool shares_pids(const runtime::v1::PodSandboxConfig& config);
/// The container's PID namespace; POD in a pod without a shared one is its own.
launch::pid_mode pid_mode_of(const runtime::v1::ContainerConfig& config, bool pod_shares_pids);

/// The question that spec/user.hpp answers.
user_request user_request_of(const runtime::v1::ContainerConfig& config, const images::image& image);

/// The stop signal's number: the request's, else the image's, else SIGTERM.
int stop_signal_of(const runtime::v1::ContainerConfig& config, const images::image_config& image);

/// Which seccomp profile a container asks for; none means unconfined, as CRI has it. Privileged ones are never
/// confined.
struct seccomp_choice {
    enum class kind { unconfined, runtime_default, localhost } what = kind::unconfined;
    std::string path{}; ///< of localhost
};
result<seccomp_choice> seccomp_of(const runtime::v1::ContainerConfig& config);

/// How the container's first process runs; exec uses it too, with another argv. Pure. [any]
result<launch::process_plan> process_of(const runtime::v1::ContainerConfig& config, const images::image& image,
                                        const container_facts& facts);

/// The whole plan. code::invalid names what cannot be. Pure. [any]
result<launch::container_plan> plan_of(const runtime::v1::ContainerConfig& config, const images::image& image,
                                       container_facts facts);

/// Names of capabilities that the request adds but the node lacks, for one warning.
std::vector<std::string> missing_capabilities(const runtime::v1::ContainerConfig& config, std::uint64_t available);

} // namespace gantry::cri_native
