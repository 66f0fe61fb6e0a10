#include "core/pod/runtime_view.hpp"

#include <algorithm>
#include <tuple>

namespace gantry::core {

namespace {

/// How far a container has come; it never goes back.
int progress(container_phase phase) {
    switch (phase) {
    case container_phase::unknown: return 0;
    case container_phase::created: return 1;
    case container_phase::running: return 2;
    case container_phase::exited: return 3;
    }
    return 0;
}

template <class List>
auto by_id(List& list, std::string_view id) {
    return std::find_if(list.begin(), list.end(), [&](const auto& item) { return item.id == id; });
}

template <class T>
bool newer(const T& a, const T& b) {
    return std::tie(a.attempt, a.created_at, a.id) > std::tie(b.attempt, b.created_at, b.id);
}

} // namespace

void runtime_view::sort() {
    std::sort(sandboxes.begin(), sandboxes.end(), newer<sandbox_view>);
    std::sort(containers.begin(), containers.end(), newer<container_view>);
}

void runtime_view::merge(container_view report) {
    const auto it = by_id(containers, report.id);
    if (it == containers.end()) {
        containers.push_back(std::move(report));
        return sort();
    }
    // An end is final, with all that was learned about it.
    if (progress(report.phase) < progress(it->phase) || it->phase == container_phase::exited) return;
    if (report.hash == 0) report.hash = it->hash;
    if (report.log_path.empty()) report.log_path = std::move(it->log_path);
    if (report.sandbox_id.empty()) report.sandbox_id = std::move(it->sandbox_id);
    *it = std::move(report);
    sort();
}

void runtime_view::merge(sandbox_view report) {
    const auto it = by_id(sandboxes, report.id);
    if (it == sandboxes.end()) {
        sandboxes.push_back(std::move(report));
        return sort();
    }
    if (report.ready && !it->ready) return;
    if (report.ips.empty()) report.ips = std::move(it->ips);
    *it = std::move(report);
}

const sandbox_view* runtime_view::find_sandbox(std::string_view id) const {
    const auto it = by_id(sandboxes, id);
    return it == sandboxes.end() ? nullptr : &*it;
}

const container_view* runtime_view::find(std::string_view id) const {
    const auto it = by_id(containers, id);
    return it == containers.end() ? nullptr : &*it;
}

const container_view* runtime_view::newest(std::string_view name) const {
    for (const auto& c : containers)
        if (c.name == name) return &c;
    return nullptr;
}

const container_view* runtime_view::previous(std::string_view name) const {
    bool first = true;
    for (const auto& c : containers) {
        if (c.name != name) continue;
        if (!first) return &c;
        first = false;
    }
    return nullptr;
}

void runtime_view::erase(std::string_view id) {
    std::erase_if(containers, [&](const container_view& c) { return c.id == id; });
}

void runtime_view::erase_sandbox(std::string_view id) {
    std::erase_if(containers, [&](const container_view& c) { return c.sandbox_id == id; });
    std::erase_if(sandboxes, [&](const sandbox_view& s) { return s.id == id; });
}

bool runtime_view::any_running() const {
    return std::any_of(containers.begin(), containers.end(),
                       [](const container_view& c) { return c.phase == container_phase::running; });
}

} // namespace gantry::core
