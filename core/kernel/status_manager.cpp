#include "core/kernel/status_manager.hpp"

#include "core/pod/phase.hpp"
#include "core/pod/restart.hpp"

namespace gantry::core {

bool status_manager::publish(std::shared_ptr<const model::pod> pod, model::pod_status status) {
    const auto& uid = pod->metadata.uid;
    const auto known = find(uid);
    if (known && known->pod == pod && *known->status == status) return false;
    auto change = std::make_shared<pod_change>();
    change->version = ++version_;
    change->status = std::make_shared<const model::pod_status>(std::move(status));
    change->pod = std::move(pod);
    changes_.publish(change->pod->metadata.uid, change);
    return true;
}

std::shared_ptr<const pod_change> status_manager::find(const std::string& uid) const {
    const auto it = changes_.state().find(uid);
    return it == changes_.state().end() ? nullptr : it->second;
}

std::string status_word(const model::pod& pod, const model::pod_status& status, bool ending) {
    std::string word = status.reason.empty() ? status.phase : status.reason;
    bool initializing = false;
    const auto& init = pod.spec.init_containers;
    for (std::size_t i = 0; i < init.size() && !initializing && !is_terminal(status.phase); ++i) {
        const auto* s = find_status(status.init_container_statuses, init[i].name);
        if (s == nullptr) continue;
        const auto& state = s->state.value;
        if (is_sidecar(init[i]) ? s->started.value_or(false) : state.terminated && state.terminated->exit_code.value == 0)
            continue;
        initializing = !any_regular_started(pod.spec, status);
        if (!initializing) break;
        if (state.terminated)
            word = "Init:" + state.terminated->reason;
        else if (state.waiting && !state.waiting->reason.empty() && state.waiting->reason != "PodInitializing")
            word = "Init:" + state.waiting->reason;
        else
            word = "Init:" + std::to_string(i) + "/" + std::to_string(init.size());
    }
    bool running_ready = false;
    if (!initializing) {
        for (auto s = status.container_statuses.rbegin(); s != status.container_statuses.rend(); ++s) {
            const auto& state = s->state.value;
            if (state.waiting && !state.waiting->reason.empty())
                word = state.waiting->reason;
            else if (state.terminated && !state.terminated->reason.empty())
                word = status.reason.empty() ? state.terminated->reason : word;
            else if (state.running && s->ready)
                running_ready = true;
        }
        if (word == "Completed" && running_ready) word = "Running";
    }
    return ending ? "Terminating" : word;
}

pod_summary summarize(const model::pod& pod, const model::pod_status& status, bool ending) {
    pod_summary out;
    out.uid = pod.metadata.uid;
    out.namespace_ = pod.metadata.namespace_;
    out.name = pod.metadata.name;
    out.phase = status.phase;
    out.status = status_word(pod, status, ending);
    out.containers = static_cast<std::uint32_t>(pod.spec.containers.size());
    for (const auto& s : status.container_statuses) {
        out.ready += s.ready ? 1 : 0;
        out.restarts += s.restart_count;
    }
    for (const auto& s : status.init_container_statuses) out.restarts += s.restart_count;
    out.ip = status.pod_ip;
    out.start_time = base::parse_rfc3339(status.start_time).value_or(base::wall_time{});
    return out;
}

} // namespace gantry::core
