#include "core/pod/conditions.hpp"

#include <algorithm>

#include "core/pod/phase.hpp"
#include "core/pod/restart.hpp"

namespace gantry::core {

namespace {

using names = std::vector<std::string>;

std::string listed(const char* what, const names& list) {
    std::string out = std::string("containers with ") + what + " status: [";
    for (std::size_t i = 0; i < list.size(); ++i) out += (i == 0 ? "" : " ") + list[i];
    return out + "]";
}

std::string joined(const names& unknown, const char* what, const names& list) {
    std::string out;
    if (!unknown.empty()) out = listed("unknown", unknown);
    if (!list.empty()) out += (out.empty() ? "" : ", ") + listed(what, list);
    return out;
}

model::pod_condition condition(const char* type, bool value, std::string reason = {}, std::string message = {}) {
    return {.type = type,
            .status = value ? "True" : "False",
            .reason = std::move(reason),
            .message = std::move(message)};
}

model::pod_condition initialized(const model::pod_spec& spec, const model::pod_status& status) {
    constexpr auto type = "Initialized";
    if (status.init_container_statuses.empty() && !spec.init_containers.empty())
        return condition(type, false, "UnknownContainerStatuses");
    names unknown, incomplete;
    for (const auto& c : spec.init_containers) {
        const auto* s = find_status(status.init_container_statuses, c.name);
        if (s == nullptr)
            unknown.push_back(c.name);
        else if (is_sidecar(c) ? !s->started.value_or(false) : !s->ready)
            incomplete.push_back(c.name);
    }
    if (status.phase == "Succeeded" && unknown.empty()) return condition(type, true, "PodCompleted");
    if (any_regular_started(spec, status)) return condition(type, true);
    const auto message = joined(unknown, "incomplete", incomplete);
    return message.empty() ? condition(type, true) : condition(type, false, "ContainersNotInitialized", message);
}

model::pod_condition containers_ready(const model::pod_spec& spec, const model::pod_status& status) {
    constexpr auto type = "ContainersReady";
    if (status.container_statuses.empty()) return condition(type, false, "UnknownContainerStatuses");
    names unknown, unready;
    const auto look = [&](const model::container& c, const std::vector<model::container_status>& list) {
        const auto* s = find_status(list, c.name);
        if (s == nullptr)
            unknown.push_back(c.name);
        else if (!s->ready)
            unready.push_back(c.name);
    };
    for (const auto& c : spec.init_containers)
        if (is_sidecar(c)) look(c, status.init_container_statuses);
    for (const auto& c : spec.containers) look(c, status.container_statuses);
    if (status.phase == "Succeeded" && unknown.empty()) return condition(type, false, "PodCompleted");
    if (status.phase == "Failed" && unknown.empty()) return condition(type, false, "PodFailed");
    const auto message = joined(unknown, "unready", unready);
    return message.empty() ? condition(type, true) : condition(type, false, "ContainersNotReady", message);
}

const model::pod_condition* find(const model::pod_status* status, const std::string& type) {
    if (status == nullptr) return nullptr;
    const auto it = std::find_if(status->conditions.begin(), status->conditions.end(),
                                 [&](const auto& c) { return c.type == type; });
    return it == status->conditions.end() ? nullptr : &*it;
}

model::pod_condition ready(const model::pod_spec& spec, const model::pod_condition& containers,
                           const model::pod_status* before) {
    constexpr auto type = "Ready";
    if (containers.status != "True") return condition(type, false, containers.reason, containers.message);
    std::string message;
    for (const auto& gate : spec.readiness_gates) {
        const auto* c = find(before, gate.condition_type);
        if (c != nullptr && c->status == "True") continue;
        if (!message.empty()) message += ", ";
        if (c == nullptr)
            message += "corresponding condition of pod readiness gate \"" + gate.condition_type + "\" does not exist.";
        else
            message += "the status of pod readiness gate \"" + gate.condition_type + "\" is not \"True\", but " + c->status;
    }
    return message.empty() ? condition(type, true) : condition(type, false, "ReadinessGatesNotReady", message);
}

} // namespace

std::vector<model::pod_condition> make_conditions(const model::pod& pod, const model::pod_status& status,
                                                  bool sandbox_ready, const model::pod_status* before,
                                                  const std::string& now) {
    const auto containers = containers_ready(pod.spec, status);
    std::vector<model::pod_condition> out{condition("PodReadyToStartContainers", sandbox_ready),
                                          initialized(pod.spec, status), ready(pod.spec, containers, before), containers,
                                          condition("PodScheduled", true)};
    for (auto& c : out) {
        c.observed_generation = pod.metadata.generation;
        const auto* old = find(before, c.type);
        c.last_transition_time = old != nullptr && old->status == c.status ? old->last_transition_time : now;
    }
    if (before != nullptr)
        for (const auto& c : before->conditions)
            if (std::none_of(out.begin(), out.end(), [&](const auto& own) { return own.type == c.type; })) out.push_back(c);
    return out;
}

} // namespace gantry::core
