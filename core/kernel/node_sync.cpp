// The SyncLoop: what sources and runtimes report finds its worker here.
#include <algorithm>

#include "core/kernel/kernel_impl.hpp"
#include "core/log/log.hpp"
#include "core/pod/names.hpp"

namespace gantry::core {

void node::impl::source_changed(const std::string& uid) {
    if (stopping) return;
    const auto wanted = table.find(uid);
    const auto it = workers.find(uid);
    if (it == workers.end()) {
        if (wanted) settle(pod_key(wanted->pod->metadata));
        return;
    }
    if (!wanted) {
        it->second->remove();
    } else if (!it->second->removed() && it->second->pod() != wanted->pod) {
        it->second->update(wanted->pod);
    }
    // A pod that comes back while it is being removed starts again once it is gone.
}

/// Who holds a name keeps it; a free name goes to the first of its candidates.
void node::impl::settle(const std::string& key) {
    const auto rivals = table.candidates(key);
    if (rivals.empty()) return;
    auto holder = names.find(key);
    if (holder == names.end()) {
        const auto& winner = rivals.front().pod;
        if (workers.contains(winner->metadata.uid)) return;
        start_worker(winner->metadata.uid, winner);
        holder = names.find(key);
    }
    for (const auto& rival : rivals) {
        const auto& meta = rival.pod->metadata;
        if (meta.uid == holder->second) {
            losers.erase(meta.uid);
            continue;
        }
        const auto& worker = workers.at(holder->second);
        if (worker->removed() || !losers.insert(meta.uid).second) continue;
        kube_event event;
        event.warning = true;
        event.reason = "FailedValidation";
        event.message = "Error validating pod " + pod_title(meta) + " from " +
                        std::string(sources[rival.source]->client().instance()) + " due to duplicate pod name \"" +
                        meta.name + "\", ignoring; " + holder->second + " keeps the name";
        event.namespace_ = meta.namespace_;
        event.pod = meta.name;
        event.uid = meta.uid;
        log::warn("two pods have the same name", {{"pod", key}, {"kept", holder->second}, {"ignored", meta.uid}});
        events.record(std::move(event), std::chrono::system_clock::now());
    }
}

void node::impl::start_worker(const std::string& uid, std::shared_ptr<const model::pod> pod) {
    auto worker = std::make_shared<pod_worker>(context, uid);
    if (auto record = records.extract(uid); !record.empty()) worker->load(std::move(record.mapped()));
    if (auto found = strays.extract(uid); !found.empty())
        worker->adopt(found.mapped().slot, std::move(found.mapped().pod.view));
    names[pod_key(pod->metadata)] = uid;
    worker->update(std::move(pod));
    run_worker(std::move(worker));
}

void node::impl::start_orphan(const std::string& uid, stray found) {
    log::info("removing a pod that no source wants",
              {{"pod", found.pod.namespace_ + "/" + found.pod.name}, {"uid", uid}});
    auto worker = std::make_shared<pod_worker>(context, uid);
    pod_record record;
    if (auto known = records.extract(uid); !known.empty()) record = std::move(known.mapped());
    record.namespace_ = found.pod.namespace_;
    record.name = found.pod.name;
    record.final_status.reset();
    worker->load(std::move(record));
    worker->adopt(std::move(found.slot), std::move(found.pod.view));
    names.emplace(found.pod.namespace_ + "/" + found.pod.name, uid);
    worker->remove();
    run_worker(std::move(worker));
}

void node::impl::run_worker(std::shared_ptr<pod_worker> worker) {
    workers[worker->uid()] = worker;
    const auto keep = [](std::shared_ptr<pod_worker> w) -> task { co_await w->run(); };
    pods.add(keep(std::move(worker)));
}

void node::impl::worker_finished(const std::string& uid) {
    const auto it = workers.find(uid);
    if (it == workers.end()) return;
    workers.erase(it);
    std::string key;
    for (auto name = names.begin(); name != names.end(); ++name)
        if (name->second == uid) {
            key = name->first;
            names.erase(name);
            break;
        }
    if (stopping) return;
    if (!key.empty()) settle(key);
    source_changed(uid);
    for (const auto& [other, worker] : workers)
        if (!worker->holds()) worker->wake();
}

void node::impl::listed(const std::shared_ptr<runtime_slot>& slot, found_pods found,
                        const std::vector<std::string>& vanished) {
    std::erase_if(strays, [&](const auto& s) { return s.second.slot == slot; });
    for (auto& [uid, pod] : found) {
        const auto it = workers.find(uid);
        if (it == workers.end()) {
            strays[uid] = {slot, std::move(pod)};
            continue;
        }
        auto& worker = *it->second;
        if (worker.view().sandboxes.empty() && worker.view().containers.empty() &&
            (!worker.slot() || worker.slot() == slot)) {
            worker.adopt(slot, std::move(pod.view));
            continue;
        }
        worker.observed(pod.view);
    }
    if (!vanished.empty())
        for (const auto& [uid, worker] : workers)
            if (worker->slot() == slot) worker->vanished(vanished);
    loops.add(sweep());
}

void node::impl::runtime_changed(const runtime_event& event) {
    if (const auto it = workers.find(event.uid); it != workers.end()) return it->second->report(event);
    if (!event.uid.empty()) return;
    for (const auto& [uid, worker] : workers)
        if (worker->view().find(event.id) != nullptr || worker->view().find_sandbox(event.id) != nullptr)
            return worker->report(event);
}

bool node::impl::all_ready() const {
    return std::all_of(sources.begin(), sources.end(), [](const auto& s) { return s->synced(); }) &&
           std::all_of(runtimes.begin(), runtimes.end(), [](const auto& r) { return r->slot().ready; });
}

std::optional<rejection> node::impl::admit_pod(const model::pod& pod) const {
    std::vector<admitted_pod> others;
    for (const auto& [uid, worker] : workers)
        if (uid != pod.metadata.uid && worker->pod() && worker->holds())
            others.push_back({worker->pod().get(), worker->ending()});
    return admit(pod, others, admission);
}

std::map<std::string, const runtime_view*> node::impl::known(const runtime_slot& slot) const {
    std::map<std::string, const runtime_view*> out;
    for (const auto& [uid, worker] : workers)
        if (worker->slot() && worker->slot().get() == &slot) out.emplace(uid, &worker->view());
    return out;
}

} // namespace gantry::core
