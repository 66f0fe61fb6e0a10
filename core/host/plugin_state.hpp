// The states of a plugin instance that an operator sees.
#pragma once

#include <string_view>

namespace gantry::core {

enum class plugin_state { loaded, initialised, active, draining, stopped, failed, hung, quarantined };

constexpr std::string_view to_string(plugin_state state) noexcept {
    switch (state) {
    case plugin_state::loaded: return "loaded";
    case plugin_state::initialised: return "initialised";
    case plugin_state::active: return "active";
    case plugin_state::draining: return "draining";
    case plugin_state::stopped: return "stopped";
    case plugin_state::failed: return "failed";
    case plugin_state::hung: return "hung";
    case plugin_state::quarantined: return "quarantined";
    }
    return "failed";
}

} // namespace gantry::core
