#include "core/pod/status.hpp"

#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>

#include "core/pod/conditions.hpp"
#include "core/pod/phase.hpp"
#include "core/pod/resources.hpp"
#include "core/pod/restart.hpp"
#include "gantry/model/json.hpp"

namespace gantry::core {

namespace {

std::string stamp(base::wall_time t) { return t == base::wall_time{} ? std::string() : base::format_rfc3339(t); }

class status_writer {
public:
    explicit status_writer(const status_input& in) : in_(in), spec_(in.pod.spec) {}

    model::container_status write(const model::container& c, bool init) const {
        const auto* before = find_before(c.name, init);
        const auto* newest = in_.view.newest(c.name);
        model::container_status out;
        out.name = c.name;
        out.image = c.image;
        out.started = false;
        add_resources(out, c);
        if (newest == nullptr)
            absent(out, before);
        else
            present(out, *newest);
        if (newest == nullptr || wants_start(c, init, *newest)) explain_waiting(out, c.name);

        const auto& state = out.state.value;
        if (state.running) {
            out.started = true;
            out.ready = !init || is_sidecar(c);
        } else if (init && !is_sidecar(c) && state.terminated) {
            out.ready = state.terminated->exit_code.value == 0;
        }
        return out;
    }

private:
    const model::container_status* find_before(const std::string& name, bool init) const {
        if (in_.before == nullptr) return nullptr;
        return find_status(init ? in_.before->init_container_statuses : in_.before->container_statuses, name);
    }

    bool wants_start(const model::container& c, bool init, const container_view& newest) const {
        if (in_.stage != pod_stage::running) return false;
        if (init && !is_sidecar(c) && newest.phase == container_phase::exited && newest.exit_code == 0) return false;
        return needs_start(spec_, c, &newest);
    }

    model::container_state_waiting default_waiting() const {
        return {.reason = spec_.init_containers.empty() ? "ContainerCreating" : "PodInitializing"};
    }

    model::container_state_terminated terminated(const container_view& v) const {
        return {.exit_code = v.exit_code,
                .reason = v.reason,
                .message = v.message,
                .started_at = stamp(v.started_at),
                .finished_at = stamp(v.finished_at),
                .container_id = full_id(v)};
    }

    std::string full_id(const container_view& v) const { return in_.runtime_name + "://" + v.id; }

    void absent(model::container_status& out, const model::container_status* before) const {
        out.state.value.waiting = default_waiting();
        if (before == nullptr) return;
        if (before->state.value.terminated) {
            out = *before;
            return;
        }
        out.restart_count = before->restart_count;
        out.last_state = before->last_state;
        if (!before->state.value.running) return;
        out.last_state.value = {};
        out.last_state.value.terminated = model::container_state_terminated{
            .exit_code = 137,
            .reason = "ContainerStatusUnknown",
            .message = "The container could not be located when the pod was deleted.  The container used to be Running"};
        if (in_.stage == pod_stage::running) out.restart_count = before->restart_count + 1;
    }

    void present(model::container_status& out, const container_view& v) const {
        if (!v.image.empty()) out.image = v.image;
        out.image_id = v.image_ref;
        out.container_id = full_id(v);
        out.restart_count = static_cast<std::int32_t>(v.attempt);
        switch (v.phase) {
        case container_phase::running:
            out.state.value.running = model::container_state_running{.started_at = stamp(v.started_at)};
            break;
        case container_phase::exited: out.state.value.terminated = terminated(v); break;
        case container_phase::created:
        case container_phase::unknown: out.state.value.waiting = default_waiting(); break;
        }
        if (const auto* last = in_.view.previous(v.name); last != nullptr && last->phase == container_phase::exited)
            out.last_state.value.terminated = terminated(*last);
    }

    void explain_waiting(model::container_status& out, const std::string& name) const {
        const auto why = in_.waiting.find(name);
        if (why == in_.waiting.end()) return;
        auto& state = out.state.value;
        if (state.terminated) {
            out.last_state.value = {};
            out.last_state.value.terminated = std::move(state.terminated);
        }
        state = {};
        state.waiting = model::container_state_waiting{.reason = why->second.reason, .message = why->second.message};
    }

    static void add_resources(model::container_status& out, const model::container& c) {
        if (!c.resources || (c.resources->limits.empty() && c.resources->requests.empty())) return;
        out.allocated_resources = c.resources->requests;
        out.resources.text = boost::json::serialize(model::to_json(*c.resources));
    }

    const status_input& in_;
    const model::pod_spec& spec_;
};

/// What no longer runs and was never found ended in a way that nobody saw.
void end_unknown(model::pod_status& status, const model::pod_spec& spec, bool initialized) {
    const auto end = [](model::container_status& s) {
        if (s.state.value.terminated) return;
        s.state.value = {};
        s.state.value.terminated = model::container_state_terminated{
            .exit_code = 137,
            .reason = "ContainerStatusUnknown",
            .message = "The container could not be located when the pod was terminated"};
        s.started = false;
        s.ready = false;
    };
    if (initialized)
        for (auto& s : status.container_statuses) end(s);
    for (std::size_t i = 0; i < status.init_container_statuses.size(); ++i) {
        auto& s = status.init_container_statuses[i];
        // Init containers that had not been reached never ran, so they have no end either.
        const bool reached = initialized || s.state.value.running || s.state.value.terminated || i == 0;
        if (!reached) break;
        end(s);
        if (!is_sidecar(spec.init_containers[i])) s.ready = s.state.value.terminated->exit_code.value == 0;
    }
}

} // namespace

model::pod_status make_status(const status_input& in) {
    const auto& spec = in.pod.spec;
    const status_writer writer(in);
    model::pod_status out;
    for (const auto& c : spec.init_containers) out.init_container_statuses.push_back(writer.write(c, true));
    for (const auto& c : spec.containers) out.container_statuses.push_back(writer.write(c, false));
    if (in.stage == pod_stage::ended) end_unknown(out, spec, in.initialized);

    out.observed_generation = in.pod.metadata.generation;
    out.qos_class = qos_class(spec);
    out.start_time = stamp(in.start_time);
    out.reason = in.reason;
    out.message = in.message;
    out.phase = !in.phase.empty() ? in.phase : compute_phase(spec, out, in.stage != pod_stage::running);
    if (in.stage == pod_stage::ended && !is_terminal(out.phase)) out.phase = "Failed";
    // Terminal phases never change.
    if (in.before != nullptr && is_terminal(in.before->phase)) out.phase = in.before->phase;

    if (!in.host_ip.empty()) {
        out.host_ip = in.host_ip;
        out.host_ips.push_back({.ip = in.host_ip});
    }
    const auto* sandbox = in.view.sandbox();
    if (spec.host_network) {
        if (sandbox != nullptr && !in.host_ip.empty()) out.pod_ips.push_back({.ip = in.host_ip});
    } else if (sandbox != nullptr && !sandbox->ips.empty()) {
        for (const auto& ip : sandbox->ips) out.pod_ips.push_back({.ip = ip});
    } else if (in.before != nullptr) {
        out.pod_ips = in.before->pod_ips;
    }
    if (!out.pod_ips.empty()) out.pod_ip = out.pod_ips[0].ip;

    const bool sandbox_ready =
        sandbox != nullptr && sandbox->ready && (spec.host_network || !sandbox->ips.empty());
    out.conditions = make_conditions(in.pod, out, sandbox_ready, in.before, stamp(in.now));
    return out;
}

model::pod_status rejected_status(const model::pod& pod, std::string reason, const std::string& message,
                                  base::wall_time start_time) {
    model::pod_status out;
    out.observed_generation = pod.metadata.generation;
    out.phase = "Failed";
    out.reason = std::move(reason);
    out.message = "Pod was rejected: " + message;
    out.start_time = stamp(start_time);
    out.qos_class = qos_class(pod.spec);
    return out;
}

std::uint32_t next_attempt(const runtime_view& view, const std::string& container, const model::pod_status* before) {
    if (const auto* newest = view.newest(container)) return newest->attempt + 1;
    if (before == nullptr) return 0;
    for (const auto* list : {&before->init_container_statuses, &before->container_statuses})
        if (const auto* s = find_status(*list, container)) {
            // Without a container id the count was raised already when the instance was lost.
            const bool ran = s->state.value.running || s->state.value.terminated || !s->container_id.empty();
            return static_cast<std::uint32_t>(s->restart_count) + (ran ? 1 : 0);
        }
    return 0;
}

} // namespace gantry::core
