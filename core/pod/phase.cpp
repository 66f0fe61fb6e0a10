#include "core/pod/phase.hpp"

#include <algorithm>

#include "core/pod/restart.hpp"

namespace gantry::core {

const model::container_status* find_status(const std::vector<model::container_status>& list, const std::string& name) {
    const auto it = std::find_if(list.begin(), list.end(), [&](const auto& s) { return s.name == name; });
    return it == list.end() ? nullptr : &*it;
}

bool any_regular_started(const model::pod_spec& spec, const model::pod_status& status) {
    return std::any_of(spec.containers.begin(), spec.containers.end(), [&](const model::container& c) {
        const auto* s = find_status(status.container_statuses, c.name);
        return s != nullptr && (s->started.value_or(false) || s->state.value.running || s->state.value.terminated ||
                                s->last_state.value.terminated);
    });
}

namespace {

struct counts {
    int pending_init = 0;
    bool failed_init = false;
    int pending_sidecars = 0;
    int running = 0;
    int waiting = 0;
    int stopped = 0;
    int succeeded = 0;
    int unknown = 0;
    bool may_restart = false;
};

void count_init(counts& n, const model::pod_spec& spec, const model::container& c, const model::container_status* s) {
    if (s == nullptr) {
        ++n.pending_init;
        return;
    }
    const auto& state = s->state.value;
    const auto* ended = state.terminated ? state.terminated.get() : nullptr;
    if (state.waiting && s->last_state.value.terminated) ended = s->last_state.value.terminated.get();
    if (ended == nullptr)
        ++n.pending_init;
    else if (ended->exit_code.value != 0)
        n.failed_init = n.failed_init || policy_of(spec, c) == restart_policy::never;
}

void count_sidecar(counts& n, const model::container_status* s) {
    if (s == nullptr) {
        ++n.unknown;
    } else if (s->state.value.running) {
        ++n.running;
        if (!s->started.value_or(false)) ++n.pending_sidecars;
    } else if (s->state.value.waiting && !s->last_state.value.terminated) {
        ++n.waiting;
        ++n.pending_sidecars;
    }
}

void count_regular(counts& n, const model::pod_spec& spec, const model::container& c, const model::container_status* s) {
    if (s == nullptr) {
        ++n.unknown;
        return;
    }
    const auto& state = s->state.value;
    if (state.running) {
        ++n.running;
    } else if (state.terminated) {
        ++n.stopped;
        if (state.terminated->exit_code.value == 0) ++n.succeeded;
        n.may_restart = n.may_restart || restarts(policy_of(spec, c), state.terminated->exit_code);
    } else if (state.waiting && s->last_state.value.terminated) {
        ++n.stopped;
        n.may_restart = true;
    } else if (state.waiting) {
        ++n.waiting;
    } else {
        ++n.unknown;
    }
}

} // namespace

std::string compute_phase(const model::pod_spec& spec, const model::pod_status& status, bool ending) {
    counts n;
    for (const auto& c : spec.init_containers) {
        const auto* s = find_status(status.init_container_statuses, c.name);
        if (is_sidecar(c))
            count_sidecar(n, s);
        else
            count_init(n, spec, c, s);
    }
    for (const auto& c : spec.containers) count_regular(n, spec, c, find_status(status.container_statuses, c.name));

    if (n.failed_init) return "Failed";
    const bool initialized = any_regular_started(spec, status);
    if (!initialized && (n.pending_init > 0 || n.pending_sidecars > 0)) return "Pending";
    if (n.waiting > 0) return "Pending";
    if (n.running > 0 && n.unknown == 0) return "Running";
    if (n.running == 0 && n.stopped > 0 && n.unknown == 0) {
        const std::string end = n.stopped == n.succeeded ? "Succeeded" : "Failed";
        return !ending && n.may_restart ? "Running" : end;
    }
    return "Pending";
}

} // namespace gantry::core
