// Kubernetes Events of this node, in a bounded ring: the same event again counts up instead of taking another place.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/time.hpp"

namespace gantry::core {

using base::wall_time;

struct kube_event {
    std::uint64_t id = 0; ///< given by the recorder; stays when the event repeats
    bool warning = false;
    std::string reason{};
    std::string message{};
    std::string namespace_{};
    std::string pod{};
    std::string uid{};
    std::string field_path{}; ///< "spec.containers{web}", or empty for the pod itself
    std::uint32_t count = 1;
    wall_time first_seen{};
    wall_time last_seen{};
};

class event_recorder {
public:
    struct hooks {
        std::function<void(const std::shared_ptr<const kube_event>&)> changed; ///< after each record
        std::function<void(std::uint64_t id)> dropped;  ///< the ring was full
    };

    explicit event_recorder(std::size_t limit = 1024, hooks h = {}) : limit_(limit), hooks_(std::move(h)) {}

    /// Takes id, count, first_seen and last_seen from itself and now.
    void record(kube_event event, wall_time now);

    /// Oldest first; uid empty: all.
    std::vector<kube_event> list(std::string_view uid = {}) const;

private:
    std::size_t limit_;
    hooks hooks_;
    std::uint64_t last_id_ = 0;
    std::list<std::shared_ptr<const kube_event>> ring_;                                  ///< last seen last
    std::unordered_map<std::size_t, std::list<std::shared_ptr<const kube_event>>::iterator> known_; ///< by hash
};

} // namespace gantry::core
