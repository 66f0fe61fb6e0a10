#include "core/pod/actions.hpp"

#include <algorithm>

#include "core/pod/names.hpp"
#include "core/pod/restart.hpp"

namespace gantry::core {

namespace {

/// The sandbox that containers may be started in; nullptr when a new one is needed.
const sandbox_view* usable_sandbox(const model::pod_spec& spec, const runtime_view& view) {
    const auto* newest = view.sandbox();
    if (newest == nullptr || !newest->ready || newest->host_network.value_or(spec.host_network) != spec.host_network) return nullptr;
    const auto ready = std::count_if(view.sandboxes.begin(), view.sandboxes.end(), [](auto& s) { return s.ready; });
    const bool lost = std::any_of(view.containers.begin(), view.containers.end(), [&](const container_view& c) {
        return c.sandbox_id == newest->id && c.reason == supervisor_lost;
    });
    return ready == 1 && !lost ? newest : nullptr;
}

/// Whether a new sandbox would have work. What still runs in the old one is going to be killed.
bool needs_pod(const model::pod_spec& spec, const runtime_view& view) {
    constexpr std::int32_t killed = 137;
    return std::any_of(spec.containers.begin(), spec.containers.end(), [&](const model::container& c) {
        const auto* newest = view.newest(c.name);
        if (newest != nullptr && newest->phase == container_phase::running) return restarts(policy_of(spec, c), killed);
        return needs_start(spec, c, newest);
    });
}

/// Progress of the init containers in one sandbox.
class init_progress {
public:
    init_progress(const model::pod_spec& spec, const runtime_view& view, const sandbox_view& sandbox)
        : spec_(spec), view_(view), sandbox_(sandbox) {}

    /// Adds the init containers to start now. True when the regular containers may start.
    bool run(std::vector<pod_actions::start>& out, bool& failed) const {
        const auto& init = spec_.init_containers;
        const bool initialized = std::any_of(spec_.containers.begin(), spec_.containers.end(),
                                             [&](const model::container& c) { return here(c.name) != nullptr; });
        // The furthest one that was made tells how far it went: earlier ones may have been removed since.
        std::size_t next = initialized ? init.size() : 0;
        bool wait = false;
        if (!initialized)
            for (std::size_t i = init.size(); i-- > 0;)
                if (const auto* newest = here(init[i].name)) {
                    next = after(i, *newest, wait, failed);
                    break;
                }
        if (failed) return false;
        for (std::size_t i = 0; i < next; ++i)
            if (is_sidecar(init[i]) && needs_start(spec_, init[i], here(init[i].name))) out.push_back({true, i});
        if (next == init.size()) return true;
        if (!wait) out.push_back({true, next});
        return false;
    }

private:
    const container_view* here(std::string_view name) const {
        const auto* newest = view_.newest(name);
        return newest != nullptr && newest->sandbox_id == sandbox_.id ? newest : nullptr;
    }

    /// The index to start next, seen from the furthest init container that exists.
    std::size_t after(std::size_t i, const container_view& newest, bool& wait, bool& failed) const {
        const auto& c = spec_.init_containers[i];
        switch (newest.phase) {
        case container_phase::running:
            if (is_sidecar(c)) return i + 1;
            wait = true;
            return i;
        case container_phase::created:
        case container_phase::unknown: return i;
        case container_phase::exited: break;
        }
        if (is_sidecar(c)) return i;
        if (newest.exit_code == 0) return i + 1;
        failed = !restarts(policy_of(spec_, c), newest.exit_code);
        return i;
    }

    const model::pod_spec& spec_;
    const runtime_view& view_;
    const sandbox_view& sandbox_;
};

} // namespace

pod_actions compute_actions(const model::pod_spec& spec, const runtime_view& view) {
    pod_actions out;
    const auto* sandbox = usable_sandbox(spec, view);
    if (sandbox == nullptr) {
        const bool leftovers = view.any_running() || std::any_of(view.sandboxes.begin(), view.sandboxes.end(),
                                                                 [](const sandbox_view& s) { return s.ready; });
        out.create_sandbox = needs_pod(spec, view);
        out.kill_pod = leftovers || !out.create_sandbox;
        out.attempt = view.sandbox() == nullptr ? 0 : view.sandbox()->attempt + 1;
        return out;
    }

    bool failed = false;
    std::vector<pod_actions::start> init;
    if (!init_progress(spec, view, *sandbox).run(init, failed)) {
        if (failed) {
            out.kill_pod = true;
            return out;
        }
        out.to_start = std::move(init);
        return out;
    }

    std::size_t kept = 0;
    for (std::size_t i = 0; i < spec.containers.size(); ++i) {
        const auto& c = spec.containers[i];
        const auto* newest = view.newest(c.name);
        if (needs_start(spec, c, newest)) {
            out.to_start.push_back({false, i});
        } else if (newest->phase == container_phase::running) {
            if (newest->hash != 0 && newest->hash != container_hash(c)) {
                out.to_stop.push_back({newest->id, c.name, "Container " + c.name + " definition changed, will be restarted"});
                out.to_start.push_back({false, i});
            }
            ++kept;
        }
    }
    if (kept == 0 && out.to_start.empty()) {
        out.kill_pod = true;
        return out;
    }
    out.to_start.insert(out.to_start.begin(), init.begin(), init.end());
    return out;
}

} // namespace gantry::core
