#include "core/pod/security.hpp"

#include <algorithm>

#include "core/pod/names.hpp"
#include "proto/cri.pb.h"

namespace gantry::core {

namespace cri = ::runtime::v1;

namespace {

const model::security_context none;
const model::pod_security_context pod_none;

const model::security_context& own(const model::container& c) { return c.security_context ? *c.security_context : none; }
const model::pod_security_context& shared(const model::pod& pod) {
    return pod.spec.security_context ? *pod.spec.security_context : pod_none;
}

template <class T>
std::optional<T> pick(const std::optional<T>& container, const std::optional<T>& pod) {
    return container ? container : pod;
}
template <class T>
const T* pick(const model::box<T>& container, const model::box<T>& pod) {
    return container ? container.get() : pod.get();
}

void fill(cri::NamespaceOption& out, const model::pod_spec& spec) {
    out.set_network(spec.host_network ? cri::NODE : cri::POD);
    out.set_ipc(spec.host_ipc ? cri::NODE : cri::POD);
    out.set_pid(spec.host_pid ? cri::NODE : spec.share_process_namespace == true ? cri::POD : cri::CONTAINER);
}

void fill(cri::SELinuxOption& out, const model::se_linux_options& in) {
    out.set_user(in.user);
    out.set_role(in.role);
    out.set_type(in.type);
    out.set_level(in.level);
}

void fill(cri::SecurityProfile& out, const model::security_profile& in, const std::string& dir) {
    if (in.type == "Localhost") {
        out.set_profile_type(cri::SecurityProfile::Localhost);
        out.set_localhost_ref(dir.empty() ? in.localhost_profile : dir + "/" + in.localhost_profile);
    } else {
        out.set_profile_type(in.type == "RuntimeDefault" ? cri::SecurityProfile::RuntimeDefault
                                                         : cri::SecurityProfile::Unconfined);
    }
}

template <class Out>
void fill_groups(Out& out, const model::pod_security_context& sc) {
    if (sc.fs_group) out.add_supplemental_groups(*sc.fs_group);
    for (const auto gid : sc.supplemental_groups) out.add_supplemental_groups(gid);
    if (sc.supplemental_groups_policy == "Strict")
        out.set_supplemental_groups_policy(cri::Strict);
}

void fill_proc_paths(cri::LinuxContainerSecurityContext& out, const machine_facts& machine) {
    for (const auto* path :
         {"/proc/asound", "/proc/acpi", "/proc/interrupts", "/proc/kcore", "/proc/keys", "/proc/latency_stats",
          "/proc/timer_list", "/proc/timer_stats", "/proc/sched_debug", "/proc/scsi", "/sys/firmware",
          "/sys/devices/virtual/powercap"})
        out.add_masked_paths(path);
    for (const auto& path : machine.masked_paths) out.add_masked_paths(path);
    for (const auto* path : {"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"})
        out.add_readonly_paths(path);
}

} // namespace

std::string check_non_root(const model::pod& pod, const model::container& c, const image_facts& image) {
    if (pick(own(c).run_as_non_root, shared(pod).run_as_non_root) != true) return {};
    const auto whose = " (pod: \"" + pod_title(pod.metadata) + "\", container: " + c.name + ")";
    if (const auto user = pick(own(c).run_as_user, shared(pod).run_as_user))
        return *user == 0 ? "container's runAsUser breaks non-root policy" + whose : std::string();
    if (!image.uid && !image.username.empty())
        return "container has runAsNonRoot and image has non-numeric user (" + image.username +
               "), cannot verify user is non-root" + whose;
    return image.uid.value_or(0) == 0 ? "container has runAsNonRoot and image will run as root" + whose : std::string();
}

void fill_security(cri::LinuxContainerSecurityContext& out, const model::pod& pod, const model::container& c,
                   const image_facts& image, const machine_facts& machine) {
    const auto& sc = own(c);
    const auto& all = shared(pod);
    fill(*out.mutable_namespace_options(), pod.spec);
    if (const auto user = pick(sc.run_as_user, all.run_as_user))
        out.mutable_run_as_user()->set_value(*user);
    else if (image.uid)
        out.mutable_run_as_user()->set_value(*image.uid);
    else
        out.set_run_as_username(image.username);
    if (const auto group = pick(sc.run_as_group, all.run_as_group)) out.mutable_run_as_group()->set_value(*group);
    fill_groups(out, all);
    out.set_privileged(sc.privileged.value_or(false));
    out.set_readonly_rootfs(sc.read_only_root_filesystem.value_or(false));
    out.set_no_new_privs(sc.allow_privilege_escalation == false);
    if (sc.capabilities) {
        for (const auto& cap : sc.capabilities->add) out.mutable_capabilities()->add_add_capabilities(cap);
        for (const auto& cap : sc.capabilities->drop) out.mutable_capabilities()->add_drop_capabilities(cap);
    }
    if (const auto* options = pick(sc.se_linux_options, all.se_linux_options)) fill(*out.mutable_selinux_options(), *options);
    if (const auto* profile = pick(sc.seccomp_profile, all.seccomp_profile))
        fill(*out.mutable_seccomp(), *profile, machine.seccomp_dir);
    else
        out.mutable_seccomp()->set_profile_type(cri::SecurityProfile::Unconfined);
    if (const auto* profile = pick(sc.app_armor_profile, all.app_armor_profile))
        fill(*out.mutable_apparmor(), *profile, {});
    if (sc.proc_mount != "Unmasked") fill_proc_paths(out, machine);
}

void fill_security(cri::LinuxSandboxSecurityContext& out, const model::pod& pod) {
    const auto& all = shared(pod);
    fill(*out.mutable_namespace_options(), pod.spec);
    if (all.run_as_user) out.mutable_run_as_user()->set_value(*all.run_as_user);
    if (all.run_as_group) out.mutable_run_as_group()->set_value(*all.run_as_group);
    fill_groups(out, all);
    if (all.se_linux_options) fill(*out.mutable_selinux_options(), *all.se_linux_options);
    out.mutable_seccomp()->set_profile_type(cri::SecurityProfile::RuntimeDefault);
    const auto privileged = [](const model::container& c) { return own(c).privileged == true; };
    out.set_privileged(std::any_of(pod.spec.containers.begin(), pod.spec.containers.end(), privileged) ||
                       std::any_of(pod.spec.init_containers.begin(), pod.spec.init_containers.end(), privileged));
}

} // namespace gantry::core
