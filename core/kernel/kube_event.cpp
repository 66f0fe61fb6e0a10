#include "core/kernel/kube_event.hpp"

#include <algorithm>

namespace gantry::core {

namespace {

bool same(const kube_event& a, const kube_event& b) {
    return a.uid == b.uid && a.warning == b.warning && a.reason == b.reason && a.field_path == b.field_path &&
           a.message == b.message && a.pod == b.pod && a.namespace_ == b.namespace_;
}

} // namespace

void event_recorder::record(kube_event event, wall_time now) {
    const auto known = std::find_if(ring_.rbegin(), ring_.rend(), [&](const kube_event& e) { return same(e, event); });
    if (known != ring_.rend()) {
        event = *known;
        ++event.count;
        ring_.erase(std::next(known).base());
    } else {
        event.id = ++last_id_;
        event.count = 1;
        event.first_seen = now;
    }
    event.last_seen = now;
    ring_.push_back(std::move(event));
    if (hooks_.changed) hooks_.changed(ring_.back());
    if (ring_.size() <= limit_) return;
    const auto dropped = ring_.front().id;
    ring_.pop_front();
    if (hooks_.dropped) hooks_.dropped(dropped);
}

std::vector<kube_event> event_recorder::list(std::string_view uid) const {
    std::vector<kube_event> out;
    for (const auto& e : ring_)
        if (uid.empty() || e.uid == uid) out.push_back(e);
    return out;
}

} // namespace gantry::core
