#include "core/kernel/kube_event.hpp"

namespace gantry::core {

namespace {

bool same(const kube_event& a, const kube_event& b) {
    return a.uid == b.uid && a.warning == b.warning && a.reason == b.reason && a.field_path == b.field_path &&
           a.message == b.message && a.pod == b.pod && a.namespace_ == b.namespace_;
}

std::size_t hash_of(const kube_event& e) {
    std::size_t out = e.warning ? 1 : 0;
    for (const auto* part : {&e.uid, &e.reason, &e.field_path, &e.message, &e.pod, &e.namespace_})
        out = out * 1099511628211u + std::hash<std::string>()(*part);
    return out;
}

} // namespace

void event_recorder::record(kube_event event, wall_time now) {
    const auto hash = hash_of(event);
    const auto known = known_.find(hash);
    if (known != known_.end() && same(**known->second, event)) {
        event = **known->second;
        ++event.count;
        ring_.erase(known->second);
    } else {
        event.id = ++last_id_;
        event.count = 1;
        event.first_seen = now;
    }
    event.last_seen = now;
    const auto place = ring_.insert(ring_.end(), std::make_shared<const kube_event>(std::move(event)));
    known_[hash] = place;
    if (hooks_.changed) hooks_.changed(*place);
    if (ring_.size() <= limit_) return;
    const auto oldest = ring_.front();
    if (const auto it = known_.find(hash_of(*oldest)); it != known_.end() && it->second == ring_.begin()) known_.erase(it);
    ring_.pop_front();
    if (hooks_.dropped) hooks_.dropped(oldest->id);
}

std::vector<kube_event> event_recorder::list(std::string_view uid) const {
    std::vector<kube_event> out;
    for (const auto& e : ring_)
        if (uid.empty() || e->uid == uid) out.push_back(*e);
    return out;
}

} // namespace gantry::core
