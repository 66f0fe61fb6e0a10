#include "core/pod/restart.hpp"

namespace gantry::core {

restart_policy policy_of(const model::pod_spec& spec, const model::container& c) {
    const std::string_view text = c.restart_policy.empty() ? spec.restart_policy : c.restart_policy;
    if (text == "Never") return restart_policy::never;
    return text == "OnFailure" ? restart_policy::on_failure : restart_policy::always;
}

bool restarts(restart_policy policy, std::int32_t exit_code) {
    switch (policy) {
    case restart_policy::always: return true;
    case restart_policy::on_failure: return exit_code != 0;
    case restart_policy::never: return false;
    }
    return false;
}

bool needs_start(const model::pod_spec& spec, const model::container& c, const container_view* newest) {
    if (newest == nullptr) return true;
    switch (newest->phase) {
    case container_phase::running: return false;
    // Made, but never started: a start that was interrupted. Nothing has run, so no policy is asked.
    case container_phase::created:
    case container_phase::unknown: return true;
    case container_phase::exited: return restarts(policy_of(spec, c), newest->exit_code);
    }
    return true;
}

} // namespace gantry::core
