// What the node's event bus offers to plugins.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace gantry::core {

/// Every function is called on the core loop and must not block. Empty ones are not called.
struct event_port {
    using handler = std::function<void(const std::string& key, const std::string& bytes)>;

    std::function<void(const std::string& topic, const std::string& key, const std::string& bytes)> publish{};
    std::function<std::uint64_t(const std::string& topic, handler on_event)> subscribe{}; ///< handle > 0
    std::function<void(std::uint64_t subscription)> unsubscribe{};
    /// A Kubernetes Event about a pod, as JSON: {type, reason, message, pod {namespace, name, uid}}.
    std::function<void(const std::string& instance, const std::string& event_json)> emit{};
};

} // namespace gantry::core
