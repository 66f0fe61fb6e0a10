// What has to be done for a pod now: the spec against what runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/pod/runtime_view.hpp"
#include "gantry/model/pod.hpp"

namespace gantry::core {

struct pod_actions {
    struct stop {
        std::string id;
        std::string name;
        std::string message; ///< of the event: "Container c definition changed, will be restarted"
    };
    struct start {
        bool init = false;
        std::size_t index = 0;

        friend bool operator==(const start&, const start&) = default;
    };

    bool kill_pod = false;       ///< stop every container and sandbox first
    bool create_sandbox = false; ///< then make a sandbox with this attempt
    std::uint32_t attempt = 0;
    std::vector<stop> to_stop;
    std::vector<start> to_start; ///< in this order, each after the one before has started

    /// Nothing runs and nothing will: the pod is done.
    bool finished() const { return kill_pod && !create_sandbox; }
    bool idle() const { return !kill_pod && !create_sandbox && to_stop.empty() && to_start.empty(); }
};

/// The first steps that bring the pod nearer to its spec; to be asked again after they were taken. Back-off is not looked
/// at: what is in to_start may have to wait for its time.
pod_actions compute_actions(const model::pod_spec& spec, const runtime_view& view);

} // namespace gantry::core
