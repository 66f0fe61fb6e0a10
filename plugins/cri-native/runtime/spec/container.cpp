#include "plugins/cri-native/runtime/spec/container.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <csignal>

#include "base/invalid.hpp"
#include "plugins/cri-native/launch/defaults.hpp"
#include "plugins/cri-native/runtime/spec/capabilities.hpp"
#include "plugins/cri-native/runtime/spec/mounts.hpp"
#include "plugins/cri-native/runtime/spec/process.hpp"

namespace gantry::cri_native {

namespace {

namespace cri = runtime::v1;

const cri::LinuxContainerSecurityContext& security(const cri::ContainerConfig& config) {
    return config.linux().security_context();
}

std::vector<std::string> strings(const google::protobuf::RepeatedPtrField<std::string>& list) {
    return {list.begin(), list.end()};
}

capability_request capabilities_asked(const cri::ContainerConfig& config, std::uint64_t available) {
    const auto& caps = security(config).capabilities();
    return {.privileged = security(config).privileged(),
            .add = strings(caps.add_capabilities()),
            .drop = strings(caps.drop_capabilities()),
            .add_ambient = strings(caps.add_ambient_capabilities()),
            .available = available};
}

result<std::vector<std::string>> environment_of(const cri::ContainerConfig& config, const images::image& image,
                                                const container_facts& facts) {
    environment_request request{.hostname = facts.hostname,
                                .tty = config.tty(),
                                .home = facts.who.home,
                                .image_env = image.config.env,
                                .variables = {}};
    request.variables.reserve(static_cast<std::size_t>(config.envs_size()));
    for (const auto& variable : config.envs()) request.variables.emplace_back(variable.key(), variable.value());
    return merge_environment(request);
}

/// Layers have short names in one directory, so that many of them fit into mount(2)'s one page.
launch::rootfs_plan rootfs_of(const images::image& image, const container_facts& facts, bool readonly) {
    launch::overlay_plan overlay;
    const std::string& top = image.layers.back();
    const std::string base = top.substr(0, top.rfind('/'));
    const bool shared = std::all_of(image.layers.begin(), image.layers.end(), [&](const std::string& layer) {
        return layer.substr(0, layer.rfind('/')) == base;
    });
    if (shared) overlay.base = base;
    for (auto layer = image.layers.rbegin(); layer != image.layers.rend(); ++layer)
        overlay.lower.push_back(shared ? layer->substr(base.size() + 1) : *layer);
    overlay.upper = facts.upper;
    overlay.work = facts.work;
    // The writable layer ends with its container, so it need not survive a power cut.
    if (!overlay.upper.empty()) overlay.options.emplace_back("volatile");
    if (facts.user_xattr) overlay.options.emplace_back("userxattr");
    launch::rootfs_plan rootfs;
    rootfs.overlay = std::move(overlay);
    rootfs.readonly = readonly;
    return rootfs;
}

int signal_number(cri::Signal signal) {
    if (signal == cri::SIGNAL_RUNTIME_DEFAULT || !cri::Signal_IsValid(signal)) return 0;
    // SIGNAL_SIGRTMINPLUS3 and SIGNAL_SIGRTMAXMINUS2 spell out the sign of the offset.
    std::string name = cri::Signal_Name(signal).substr(std::string_view("SIGNAL_").size());
    if (const auto at = name.find("RTMAXMINUS"); at != std::string::npos) name.replace(at, 10, "RTMAX-");
    if (const auto at = name.find("RTMINPLUS"); at != std::string::npos) name.replace(at, 9, "RTMIN+");
    return parse_signal(name);
}

} // namespace

result<void> check_container(const cri::ContainerConfig& config) {
    const auto unsupported = [](std::string message) {
        return error{.code = code::unsupported, .message = std::move(message) + " is not supported by cri-native"};
    };
    if (config.cdi_devices_size() != 0) return unsupported("CDI device " + config.cdi_devices(0).name());
    for (const auto& mount : config.mounts())
        if (mount.has_image())
            return unsupported("ImageVolumeMountFailed: the image volume at " + mount.container_path());
    const auto& context = security(config);
    if (context.apparmor().profile_type() == cri::SecurityProfile::Localhost)
        return unsupported("AppArmor profile " + context.apparmor().localhost_ref());
    if (context.capabilities().add_ambient_capabilities_size() != 0)
        return unsupported("capabilities.add_ambient_capabilities");
    if (context.namespace_options().pid() == cri::TARGET)
        return unsupported("namespace_options.pid TARGET (the PID namespace of one other container)");
    return {};
}

bool is_privileged(const cri::ContainerConfig& config) { return security(config).privileged(); }

bool shares_pids(const cri::PodSandboxConfig& config) {
    return config.linux().security_context().namespace_options().pid() == cri::POD;
}

launch::pid_mode pid_mode_of(const cri::ContainerConfig& config, bool pod_shares_pids) {
    switch (security(config).namespace_options().pid()) {
    case cri::NODE: return launch::pid_mode::host;
    case cri::POD: return pod_shares_pids ? launch::pid_mode::pod : launch::pid_mode::container;
    default: return launch::pid_mode::container;
    }
}

user_request user_request_of(const cri::ContainerConfig& config, const images::image& image) {
    const auto& context = security(config);
    user_request request;
    if (context.has_run_as_user()) request.run_as_user = context.run_as_user().value();
    request.run_as_username = context.run_as_username();
    if (context.has_run_as_group()) request.run_as_group = context.run_as_group().value();
    request.supplemental_groups.assign(context.supplemental_groups().begin(), context.supplemental_groups().end());
    request.merge_image_groups = context.supplemental_groups_policy() != cri::Strict;
    request.image_user = image.config.user;
    request.image = config.image().user_specified_image().empty() ? image.id : config.image().user_specified_image();
    return request;
}

int stop_signal_of(const cri::ContainerConfig& config, const images::image_config& image) {
    if (const int asked = signal_number(config.stop_signal()); asked != 0) return asked;
    const int own = parse_signal(image.stop_signal);
    return own != 0 ? own : SIGTERM;
}

result<seccomp_choice> seccomp_of(const cri::ContainerConfig& config) {
    using kind = seccomp_choice::kind;
    const auto& context = security(config);
    if (context.privileged()) return seccomp_choice{};
    if (!context.has_seccomp()) return seccomp_choice{};
    switch (context.seccomp().profile_type()) {
    case cri::SecurityProfile::Unconfined: return seccomp_choice{};
    case cri::SecurityProfile::RuntimeDefault: return seccomp_choice{.what = kind::runtime_default};
    case cri::SecurityProfile::Localhost:
        if (context.seccomp().localhost_ref().empty() || context.seccomp().localhost_ref().front() != '/')
            return invalid("seccomp.localhost_ref \"" + context.seccomp().localhost_ref() +
                           "\" is not an absolute path");
        return seccomp_choice{.what = kind::localhost, .path = context.seccomp().localhost_ref()};
    default: return invalid("seccomp.profile_type " + std::to_string(context.seccomp().profile_type()) + " is unknown");
    }
}

result<launch::process_plan> process_of(const cri::ContainerConfig& config, const images::image& image,
                                        const container_facts& facts) {
    const auto& context = security(config);
    launch::process_plan process;
    const std::string& name =
        config.image().user_specified_image().empty() ? image.id : config.image().user_specified_image();
    GANTRY_TRY(process.argv, merge_command(strings(config.command()), strings(config.args()), image.config.entrypoint,
                                           image.config.cmd, name));
    GANTRY_TRY(process.env, environment_of(config, image, facts));
    const std::string& cwd = config.working_dir().empty() ? image.config.working_dir : config.working_dir();
    process.cwd = clean_path(cwd);
    process.uid = facts.who.uid;
    process.gid = facts.who.gid;
    process.groups.assign(facts.who.groups.begin(), facts.who.groups.end());
    GANTRY_TRY(const auto sets, resolve_capabilities(capabilities_asked(config, facts.available_capabilities)));
    process.capabilities = sets.bounding;
    process.no_new_privs = context.no_new_privs();
    process.seccomp = facts.seccomp;
    if (facts.open_files != 0) process.rlimits.push_back({RLIMIT_NOFILE, facts.open_files, facts.open_files});
    const auto score = config.linux().resources().oom_score_adj();
    process.oom_score_adj = static_cast<int>(std::clamp<std::int64_t>(score, facts.lowest_oom_score, 1000));
    process.tty = config.tty();
    return process;
}

result<launch::container_plan> plan_of(const cri::ContainerConfig& config, const images::image& image,
                                       container_facts facts) {
    GANTRY_CHECK(check_container(config));
    const auto& context = security(config);
    launch::container_plan plan;
    plan.id = facts.id;
    plan.log_path = facts.log_path;
    GANTRY_TRY(plan.process, process_of(config, image, facts));
    plan.rootfs = rootfs_of(image, facts, context.readonly_rootfs());
    GANTRY_TRY(plan.mounts, container_mounts(config, {.privileged = context.privileged(),
                                                      .readonly_rootfs = context.readonly_rootfs(),
                                                      .host_ipc = facts.host_ipc,
                                                      .etc_dir = facts.etc_dir}));
    if (!context.privileged()) {
        plan.masked_paths = strings(context.masked_paths());
        plan.readonly_paths = strings(context.readonly_paths());
    }
    plan.devices = launch::default_devices();
    for (const auto& device : facts.devices) {
        std::erase_if(plan.devices, [&](const launch::device_plan& node) { return node.path == device.node.path; });
        plan.devices.push_back(device.node);
    }
    plan.cgroup = std::move(facts.cgroup);
    plan.pid = pid_mode_of(config, facts.shared_pid);
    plan.stdin_open = config.stdin();
    plan.stdin_once = config.stdin_once();
    return plan;
}

std::vector<std::string> missing_capabilities(const cri::ContainerConfig& config, std::uint64_t available) {
    std::vector<std::string> names;
    const auto sets = resolve_capabilities(capabilities_asked(config, available));
    if (!sets) return names;
    for (int number = 0; number < 64; ++number)
        if (sets->missing >> number & 1) names.push_back(capability_name(number));
    return names;
}

} // namespace gantry::cri_native
