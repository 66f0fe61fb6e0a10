#include "plugins/cri-native/runtime/spec/sandbox.hpp"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "base/invalid.hpp"

namespace gantry::cri_native {

namespace {

namespace cri = runtime::v1;

/// Without them a program that is not root can neither ping nor serve port 80, though nobody but its pod could mind: a
/// pod has a network namespace of its own. containerd 2 and Docker set the same.
constexpr std::pair<const char*, const char*> usual_sysctls[] = {
    {"net.ipv4.ip_unprivileged_port_start", "0"},
    {"net.ipv4.ping_group_range", "0 2147483647"},
};

/// The namespace whose sysctls begin like this; empty for the rest, which would change the whole node.
std::string_view namespace_of_sysctl(std::string_view name) {
    std::string dotted(name);
    std::replace(dotted.begin(), dotted.end(), '/', '.');
    if (dotted.starts_with("net.")) return "network";
    constexpr std::string_view ipc[] = {"kernel.msgmax", "kernel.msgmnb", "kernel.msgmni", "kernel.sem",
                                        "kernel.shmall", "kernel.shmmax", "kernel.shmmni", "kernel.shm_rmid_forced"};
    if (dotted.starts_with("fs.mqueue.") || std::find(std::begin(ipc), std::end(ipc), dotted) != std::end(ipc))
        return "ipc";
    return {};
}

result<void> check_sysctls(const cri::LinuxPodSandboxConfig& config) {
    const auto& namespaces = config.security_context().namespace_options();
    for (const auto& [name, value] : config.sysctls()) {
        const auto owner = namespace_of_sysctl(name);
        if (owner.empty())
            return invalid("sysctl " + name + " belongs to no namespace of the pod; it would change the whole node");
        if ((owner == "network" && namespaces.network() == cri::NODE) ||
            (owner == "ipc" && namespaces.ipc() == cri::NODE))
            return invalid("sysctl " + name + " cannot be set for a pod that uses the node's " + std::string(owner) +
                           " namespace");
    }
    return {};
}

} // namespace

std::string sandbox_name(const cri::PodSandboxMetadata& metadata) {
    return metadata.namespace_() + "/" + metadata.name() + " (" + metadata.uid() + ") attempt " +
           std::to_string(metadata.attempt());
}

result<void> check_sandbox(const cri::RunPodSandboxRequest& request) {
    const auto& config = request.config();
    if (config.metadata().name().empty() || config.metadata().uid().empty())
        return invalid("config.metadata needs a name and a uid");
    if (!request.runtime_handler().empty())
        return invalid("runtime_handler \"" + request.runtime_handler() +
                       "\" is not one of cri-native, which has only the default");
    if (config.hostname().size() > 64)
        return invalid("config.hostname has " + std::to_string(config.hostname().size()) +
                       " bytes; the kernel takes 64");
    const auto& parent = config.linux().cgroup_parent();
    if (!parent.empty() &&
        (parent.front() != '/' || parent.find("/../") != std::string::npos || parent.ends_with("/..")))
        return invalid("config.linux.cgroup_parent \"" + parent + "\" is not an absolute path without \"..\"");
    GANTRY_CHECK(check_sysctls(config.linux()));
    const auto& namespaces = config.linux().security_context().namespace_options();
    if (namespaces.has_userns_options() && namespaces.userns_options().mode() == cri::POD)
        return error{.code = code::unsupported,
                     .message = "user namespaces (hostUsers: false) are not supported by cri-native"};
    return {};
}

launch::sandbox_plan sandbox_plan_of(const store::SandboxRecord& record, std::string run_dir, std::uint64_t shm_bytes,
                                     launch::supervisor_cgroup supervisor_cgroup) {
    const auto& config = record.config();
    const auto& namespaces = config.linux().security_context().namespace_options();
    launch::sandbox_plan plan;
    plan.id = record.id();
    plan.run_dir = std::move(run_dir);
    plan.host_network = namespaces.network() == cri::NODE;
    plan.host_uts = plan.host_network;
    plan.host_ipc = namespaces.ipc() == cri::NODE;
    plan.shared_pid = namespaces.pid() == cri::POD;
    plan.hostname = record.hostname();
    plan.shm_bytes = plan.host_ipc ? 0 : shm_bytes;
    plan.cgroup = std::move(supervisor_cgroup);
    for (const auto& [name, value] : config.linux().sysctls()) plan.sysctls.push_back({name, value});
    if (!plan.host_network) {
        for (const auto& [name, value] : usual_sysctls)
            if (config.linux().sysctls().count(name) == 0) plan.sysctls.push_back({name, value});
    }
    std::sort(plan.sysctls.begin(), plan.sysctls.end(),
              [](const launch::sysctl& a, const launch::sysctl& b) { return a.name < b.name; });
    return plan;
}

} // namespace gantry::cri_native
