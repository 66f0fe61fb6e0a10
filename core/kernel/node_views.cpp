#include <algorithm>

#include "base/json.hpp"
#include "core/kernel/kernel_impl.hpp"
#include "gantry/model/json.hpp"

namespace gantry::core {

namespace {

error no_such_pod(std::string_view namespace_, std::string_view name) {
    return {.code = code::not_found,
            .message = "pod \"" + std::string(name) + "\" not found in namespace \"" + std::string(namespace_) + "\""};
}

const char* stage_name(pod_worker::stage stage) {
    switch (stage) {
    case pod_worker::stage::sync: return "sync";
    case pod_worker::stage::terminating: return "terminating";
    case pod_worker::stage::terminated: return "terminated";
    case pod_worker::stage::finished: return "finished";
    }
    return "";
}

} // namespace

std::shared_ptr<pod_worker> node::impl::find(std::string_view namespace_, std::string_view name) const {
    const auto holder = names.find(std::string(namespace_) + "/" + std::string(name));
    if (holder == names.end()) return nullptr;
    const auto it = workers.find(holder->second);
    return it == workers.end() ? nullptr : it->second;
}

pod_summary node::impl::summary_of(const pod_worker& worker) const {
    pod_summary out;
    const auto last = statuses.find(worker.uid());
    if (last) {
        out = summarize(*last->pod, *last->status, worker.ending());
    } else {
        for (const auto& [key, uid] : names)
            if (uid == worker.uid()) {
                out.namespace_ = key.substr(0, key.find('/'));
                out.name = key.substr(key.find('/') + 1);
            }
        out.uid = worker.uid();
        out.phase = "Pending";
        out.status = worker.ending() ? "Terminating" : "Pending";
        if (worker.pod()) out.containers = static_cast<std::uint32_t>(worker.pod()->spec.containers.size());
    }
    if (const auto wanted = table.find(worker.uid())) out.source = sources[wanted->source]->client().instance();
    return out;
}

std::vector<pod_summary> node::pods() const {
    std::vector<pod_summary> out;
    for (const auto& [key, uid] : impl_->names)
        if (const auto it = impl_->workers.find(uid); it != impl_->workers.end())
            out.push_back(impl_->summary_of(*it->second));
    return out;
}

result<std::string> node::pod_json(std::string_view namespace_, std::string_view name) const {
    const auto worker = impl_->find(namespace_, name);
    if (!worker || !worker->pod()) return no_such_pod(namespace_, name);
    model::pod pod = *worker->pod();
    if (const auto last = impl_->statuses.find(worker->uid())) pod.status = *last->status;
    if (pod.spec.node_name.empty()) pod.spec.node_name = impl_->options.name;
    return base::to_text(model::to_json(pod));
}

result<pod_explanation> node::explain(std::string_view namespace_, std::string_view name) const {
    const auto worker = impl_->find(namespace_, name);
    if (!worker) return no_such_pod(namespace_, name);
    pod_explanation out;
    out.summary = impl_->summary_of(*worker);
    out.state = stage_name(worker->current());
    out.waiting_for = worker->waiting_for();
    out.retry_at = worker->retry_at();
    out.events = impl_->events.list(worker->uid());
    return out;
}

std::vector<kube_event> node::events(std::string_view uid) const { return impl_->events.list(uid); }

result<container_ref> node::find_container(std::string_view namespace_, std::string_view name,
                                           std::string_view container, bool previous) const {
    const auto worker = impl_->find(namespace_, name);
    if (!worker || !worker->pod()) return no_such_pod(namespace_, name);
    const auto& spec = worker->pod()->spec;
    std::string wanted(container);
    if (wanted.empty()) wanted = spec.containers.front().name;
    const auto named = [&](const model::container& c) { return c.name == wanted; };
    if (std::none_of(spec.containers.begin(), spec.containers.end(), named) &&
        std::none_of(spec.init_containers.begin(), spec.init_containers.end(), named))
        return error{.code = code::not_found,
                     .message = "container \"" + wanted + "\" not found in pod \"" + std::string(name) + "\""};
    const auto* found = previous ? worker->view().previous(wanted) : worker->view().newest(wanted);
    if (found == nullptr || !worker->slot())
        return error{.code = code::not_found,
                     .message = previous ? "previous terminated container \"" + wanted + "\" in pod \"" +
                                               std::string(name) + "\" not found"
                                         : "container \"" + wanted + "\" in pod \"" + std::string(name) +
                                               "\" has not started yet: " + worker->waiting_for()};
    return container_ref{.runtime = worker->slot()->runtime,
                         .id = found->id,
                         .log_path = worker->log_path(*found),
                         .running = found->phase == container_phase::running};
}

node_health node::health() const {
    node_health out;
    const auto now = std::chrono::steady_clock::now();
    if (impl_->audit_due != std::chrono::steady_clock::time_point{} && now > impl_->audit_due)
        out.loop_lag = now - impl_->audit_due;
    for (const auto& s : impl_->sources) {
        source_health one{.instance = std::string(s->client().instance()), .synced = s->synced(), .error = s->error()};
        for (const auto& [object, why] : s->faults()) one.faults.push_back(object + ": " + why);
        out.sources.push_back(std::move(one));
    }
    for (const auto& r : impl_->runtimes)
        out.runtimes.push_back({.instance = std::string(r->slot().runtime->instance()),
                                .ready = r->slot().ready,
                                .error = r->slot().error});
    return out;
}

topic<std::shared_ptr<const pod_change>>& node::pod_changes() { return impl_->statuses.changes(); }
topic<std::shared_ptr<const kube_event>>& node::event_changes() { return impl_->event_topic; }

void node::record_event(kube_event event) { impl_->events.record(std::move(event), std::chrono::system_clock::now()); }

} // namespace gantry::core
