// What a container needs before its supervisor can build it: identity, cgroup, seccomp filter, directories, record.
#include <sys/stat.h>

#include "base/files.hpp"
#include "plugins/cri-native/runtime/engine.hpp"
#include "plugins/cri-native/runtime/rootfs/lookup.hpp"
#include "plugins/cri-native/runtime/spec/capabilities.hpp"
#include "plugins/cri-native/runtime/spec/limits.hpp"

namespace gantry::cri_native {

namespace {

result<identity> look_up_user(const cri::ContainerConfig& config, const images::image& image) {
    const std::vector<std::string> layers(image.layers.rbegin(), image.layers.rend());
    GANTRY_TRY(const auto passwd, read_image_file(layers, "/etc/passwd"));
    GANTRY_TRY(const auto group, read_image_file(layers, "/etc/group"));
    return resolve_user(user_request_of(config, image), passwd.value_or(""), group.value_or(""));
}

identity identity_of(const store::Identity& record) {
    return {.uid = record.uid(),
            .gid = record.gid(),
            .groups = {record.groups().begin(), record.groups().end()},
            .home = record.home()};
}

/// Kubernetes makes host paths as a volume's type says; what is missing by then is made as a directory, as other
/// runtimes do.
result<void> make_sources(const cri::ContainerConfig& config) {
    for (const auto& mount : config.mounts()) {
        struct stat st {};
        if (mount.host_path().empty() || ::lstat(mount.host_path().c_str(), &st) == 0) continue;
        if (errno == ENOENT) GANTRY_CHECK(base::make_dirs(mount.host_path(), 0755));
    }
    return {};
}

result<void> make_parent(const std::string& file) {
    if (file.empty()) return {};
    return base::make_dirs(file.substr(0, file.rfind('/')), 0755);
}

} // namespace

container_facts engine::facts_of(const container& one, const sandbox& pod) const {
    container_facts facts;
    facts.id = one.record.id();
    facts.hostname = pod.record.hostname();
    facts.etc_dir = records_.etc_dir(pod.record.id());
    facts.log_path = one.record.log_path();
    const auto& namespaces = pod.record.config().linux().security_context().namespace_options();
    facts.host_ipc = namespaces.ipc() == cri::NODE;
    facts.shared_pid = shares_pids(pod.record.config());
    facts.available_capabilities = available_capabilities_;
    facts.open_files = settings_.open_files;
    facts.lowest_oom_score = lowest_oom_score_;
    facts.who = identity_of(one.record.identity());
    facts.user_xattr = images_->user_xattr();
    return facts;
}

result<launch::container_plan> engine::prepare(container& one, const sandbox& pod, const images::image& image) {
    auto& record = one.record;
    const auto& config = record.config();
    const bool privileged = is_privileged(config);
    GANTRY_TRY(const auto who, look_up_user(config, image));
    auto* identity_record = record.mutable_identity();
    identity_record->set_uid(who.uid);
    identity_record->set_gid(who.gid);
    identity_record->mutable_groups()->Assign(who.groups.begin(), who.groups.end());
    identity_record->set_home(who.home);

    auto facts = facts_of(one, pod);
    GANTRY_TRY(facts.devices, privileged ? all_host_devices() : find_devices(config));
    facts.cgroup = cgroup_plan_of(one.cgroup, privileged);
    facts.upper = writable_dir(record.id()) + "/upper";
    facts.work = writable_dir(record.id()) + "/work";
    const auto devices = facts.devices;
    const std::string upper = facts.upper;
    const std::string work = facts.work;
    GANTRY_TRY(auto plan, plan_of(config, image, std::move(facts)));
    for (const auto& name : missing_capabilities(config, available_capabilities_))
        host_.warn("a container asks for " + name + ", which this node itself lacks; it starts without it",
                   {{"container", config.metadata().name()}, {"id", record.id()}});
    GANTRY_TRY(const auto choice, seccomp_of(config));
    GANTRY_TRY(plan.process.seccomp, seccomp_->load(choice, plan.process.capabilities));

    // From here on there is something to undo; the record goes first, so that a restart finds the rest.
    GANTRY_CHECK(records_.put(record));
    GANTRY_CHECK(base::make_dirs(upper, 0755));
    GANTRY_CHECK(base::make_dirs(work, 0700));
    GANTRY_CHECK(make_parent(record.log_path()));
    GANTRY_CHECK(make_sources(config));
    GANTRY_TRY(const auto limits, cgroup_limits(config.linux().resources()));
    GANTRY_CHECK(cgroups_->create(one.cgroup, limits));
    GANTRY_CHECK(cgroups_->set_devices(one.cgroup, device_rules(privileged, devices)));
    return plan;
}

launch::cgroup_plan engine::cgroup_plan_of(const std::string& group, bool privileged) const {
    const auto& layout = cgroups_->layout();
    launch::cgroup_plan plan;
    for (const auto& mount : layout.v1) {
        std::string options;
        bool named = false;
        for (const auto& controller : mount.controllers) {
            options += (options.empty() ? "" : ",") + controller;
            named = named || controller.starts_with("name=");
        }
        // A named hierarchy accounts for nothing: the container stays where its supervisor is in it.
        if (!named) plan.v1.push_back({.dir = mount.point + group, .options = options});
    }
    if (!layout.unified.empty()) plan.v2 = layout.unified + group;
    plan.host_namespace = privileged && cgroups_->version() == cgroup::version::v1;
    const std::string memory = cgroups_->directory(group, "memory");
    if (cgroups_->version() == cgroup::version::v2) {
        plan.oom_file = memory + "/memory.events";
    } else {
        plan.freezer_dir = cgroups_->directory(group, "freezer");
        if (!memory.empty()) plan.oom_file = memory + "/memory.oom_control";
    }
    return plan;
}

} // namespace gantry::cri_native
