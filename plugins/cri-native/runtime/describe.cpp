#include "plugins/cri-native/runtime/describe.hpp"

#include "base/json.hpp"

namespace gantry::cri_native {

namespace cri = runtime::v1;

cri::PodSandboxState state_of(const sandbox& pod) { return pod.ready() ? cri::SANDBOX_READY : cri::SANDBOX_NOTREADY; }

cri::ContainerState state_of(const container& one) {
    switch (one.state) {
    case phase::created: return cri::CONTAINER_CREATED;
    case phase::running: return cri::CONTAINER_RUNNING;
    case phase::exited: return cri::CONTAINER_EXITED;
    }
    return cri::CONTAINER_UNKNOWN;
}

cri::PodSandboxStatus status_of(const sandbox& pod) {
    cri::PodSandboxStatus status;
    const auto& record = pod.record;
    status.set_id(record.id());
    *status.mutable_metadata() = record.config().metadata();
    status.set_state(state_of(pod));
    status.set_created_at(record.created_ns());
    auto* network = status.mutable_network();
    for (int i = 0; i < record.ips_size(); ++i) {
        if (i == 0)
            network->set_ip(record.ips(0));
        else
            network->add_additional_ips()->set_ip(record.ips(i));
    }
    *status.mutable_linux()->mutable_namespaces()->mutable_options() =
        record.config().linux().security_context().namespace_options();
    *status.mutable_labels() = record.config().labels();
    *status.mutable_annotations() = record.config().annotations();
    status.set_runtime_handler(record.runtime_handler());
    return status;
}

cri::ContainerStatus status_of(const container& one) {
    cri::ContainerStatus status;
    const auto& config = one.record.config();
    status.set_id(one.record.id());
    *status.mutable_metadata() = config.metadata();
    status.set_state(state_of(one));
    status.set_created_at(one.record.created_ns());
    status.set_started_at(one.started_ns);
    status.set_finished_at(one.finished_ns);
    status.set_exit_code(one.exit_code);
    *status.mutable_image() = config.image();
    if (!config.image().user_specified_image().empty())
        status.mutable_image()->set_image(config.image().user_specified_image());
    status.set_image_ref(one.record.image_ref());
    status.set_image_id(one.record.image_id());
    status.set_reason(one.reason);
    status.set_message(one.message);
    *status.mutable_labels() = config.labels();
    *status.mutable_annotations() = config.annotations();
    *status.mutable_mounts() = config.mounts();
    status.set_log_path(one.record.log_path());
    if (config.linux().has_resources()) *status.mutable_resources()->mutable_linux() = config.linux().resources();
    auto* user = status.mutable_user()->mutable_linux();
    user->set_uid(one.record.identity().uid());
    user->set_gid(one.record.identity().gid());
    for (const auto group : one.record.identity().groups()) user->add_supplemental_groups(group);
    status.set_stop_signal(config.stop_signal());
    return status;
}

cri::PodSandbox summary_of(const sandbox& pod) {
    cri::PodSandbox item;
    const auto& record = pod.record;
    item.set_id(record.id());
    *item.mutable_metadata() = record.config().metadata();
    item.set_state(state_of(pod));
    item.set_created_at(record.created_ns());
    *item.mutable_labels() = record.config().labels();
    *item.mutable_annotations() = record.config().annotations();
    item.set_runtime_handler(record.runtime_handler());
    return item;
}

cri::Container summary_of(const container& one) {
    cri::Container item;
    const auto& config = one.record.config();
    item.set_id(one.record.id());
    item.set_pod_sandbox_id(one.record.sandbox_id());
    *item.mutable_metadata() = config.metadata();
    *item.mutable_image() = config.image();
    item.set_image_ref(one.record.image_ref());
    item.set_image_id(one.record.image_id());
    item.set_state(state_of(one));
    item.set_created_at(one.record.created_ns());
    *item.mutable_labels() = config.labels();
    *item.mutable_annotations() = config.annotations();
    return item;
}

cri::ContainerAttributes attributes_of(const container& one) {
    cri::ContainerAttributes attributes;
    attributes.set_id(one.record.id());
    *attributes.mutable_metadata() = one.record.config().metadata();
    *attributes.mutable_labels() = one.record.config().labels();
    *attributes.mutable_annotations() = one.record.config().annotations();
    return attributes;
}

bool matches(const cri::PodSandboxFilter& filter, const sandbox& pod) {
    return id_matches(filter.id(), pod.record.id()) &&
           (!filter.has_state() || filter.state().state() == state_of(pod)) &&
           selects(filter.label_selector(), pod.record.config().labels());
}

bool matches(const cri::ContainerFilter& filter, const container& one) {
    return id_matches(filter.id(), one.record.id()) && id_matches(filter.pod_sandbox_id(), one.record.sandbox_id()) &&
           (!filter.has_state() || filter.state().state() == state_of(one)) &&
           selects(filter.label_selector(), one.record.config().labels());
}

bool matches(const cri::ContainerStatsFilter& filter, const container& one) {
    return id_matches(filter.id(), one.record.id()) && id_matches(filter.pod_sandbox_id(), one.record.sandbox_id()) &&
           selects(filter.label_selector(), one.record.config().labels());
}

std::string verbose_info(const container& one) {
    base::json::object info;
    info["pid"] = one.pid;
    info["sandboxID"] = one.record.sandbox_id();
    info["cgroup"] = one.cgroup;
    info["imageID"] = one.record.image_id();
    return base::to_text(info);
}

std::string verbose_info(const sandbox& pod) {
    base::json::object info;
    info["pid"] = pod.supervisor ? pod.supervisor->pid() : 0;
    info["cgroupParent"] = pod.record.cgroup_parent();
    info["hostname"] = pod.record.hostname();
    return base::to_text(info);
}

} // namespace gantry::cri_native
