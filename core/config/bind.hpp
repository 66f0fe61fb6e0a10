// Bindings: which instance serves which capability. Pure functions over what the descriptors offer.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/config/faults.hpp"
#include "core/config/node_config.hpp"

namespace gantry::core {

/// A key of `bind:` and the capability it binds.
struct bind_key {
    std::string_view name;       ///< "network"
    std::string_view capability; ///< without its revision: "gantry.network"
    std::string_view revision;   ///< the one this build speaks: "/1-draft"
    bool many = false;           ///< a list of instances; all that offer it when the key is absent
};
std::span<const bind_key> bind_keys();

/// What one plugin of the configuration offers and needs, from its descriptor. Same order as node_config::plugins.
struct plugin_offer {
    std::string name{}; ///< instance
    std::vector<std::string> capabilities{};
    std::vector<std::string> peers{}; ///< its descriptor's `requires`
    bool owns_network = false;        ///< a runtime that calls its network itself
};

struct bindings {
    std::map<std::string, std::vector<std::string>> instances{}; ///< capability id -> instances, in order
    std::map<std::string, std::string> handlers{};               ///< RuntimeClass handler -> instance; "" is the default
    std::vector<std::string> warnings{};                         ///< plugins that nothing uses
};

/// One candidate binds itself; several without a key under `bind:`, unknown names, instances that do not offer what they
/// are bound for, requirements nobody meets, and a network that no runtime would use are faults.
bindings resolve_bindings(const bind_settings& bind, const std::vector<plugin_offer>& offers, fault_list& faults);

} // namespace gantry::core
