// v1.PodStatus from what runs.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/pod/runtime_view.hpp"
#include "gantry/model/pod.hpp"

namespace gantry::core {

struct waiting_reason {
    std::string reason; ///< CrashLoopBackOff, ErrImagePull, ...
    std::string message;

    friend bool operator==(const waiting_reason&, const waiting_reason&) = default;
};
/// Why a container that should be started is not, by container name.
using waiting_reasons = std::map<std::string, waiting_reason, std::less<>>;

enum class pod_stage : std::uint8_t {
    running, ///< to be kept as the spec says
    ending,  ///< being stopped: nothing will be restarted
    ended,   ///< nothing runs any more; this is the last status
};

struct status_input {
    const model::pod& pod;
    const runtime_view& view;
    const waiting_reasons& waiting;
    const model::pod_status* before = nullptr; ///< the status published last
    pod_stage stage = pod_stage::running;
    bool initialized = true; ///< ended only: the init containers were done when the pod began to end
    base::wall_time now{};
    base::wall_time start_time{};
    std::string host_ip{};
    std::string runtime_name{}; ///< of container ids: "NAME://ID"
    std::string phase{};        ///< forced, with reason and message: a rejected pod, a passed deadline
    std::string reason{};
    std::string message{};
};

model::pod_status make_status(const status_input& in);

/// The status of a pod that was refused: no containers, no conditions.
model::pod_status rejected_status(const model::pod& pod, std::string reason, const std::string& message,
                                  base::wall_time start_time);

/// Attempt number of the next instance of a container.
std::uint32_t next_attempt(const runtime_view& view, const std::string& container, const model::pod_status* before);

} // namespace gantry::core
