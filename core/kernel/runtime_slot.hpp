// A bound runtime with its image service, and whether it can be used now.
#pragma once

#include <string>

#include "core/host/call.hpp"

namespace gantry::core {

struct runtime_slot {
    plugin_client* runtime = nullptr;
    plugin_client* image = nullptr;
    std::string name{};  ///< of container ids, as the runtime calls itself
    bool ready = false;  ///< its pods are known and its events flow
    std::string error{}; ///< why not
};

} // namespace gantry::core
