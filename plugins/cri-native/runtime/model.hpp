// Sandboxes and containers as the runtime knows them. Touched on the lane only.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "gantry/sdk/handles.hpp"
#include "plugins/cri-native/launch/client.hpp"
#include "plugins/cri-native/runtime/lane.hpp"
#include "plugins/cri-native/runtime/store/record.pb.h"

namespace gantry::cri_native {

struct sandbox;

enum class phase : std::uint8_t { created, running, exited };

struct container {
    store::ContainerRecord record;
    std::weak_ptr<sandbox> pod;
    std::string cgroup; ///< group below every hierarchy's mount point
    bool own_pid_namespace = true;

    phase state = phase::created;
    pid_t pid = 0;
    std::int64_t started_ns = 0; ///< wall clock, Unix; likewise below
    std::int64_t finished_ns = 0;
    int exit_code = 0;
    std::string reason;  ///< of an exited container: Completed, Error, OOMKilled, StartError, SupervisorLost, Unknown
    std::string message; ///< why it could not start
    std::string refusal; ///< set when it is known that it cannot start
    bool removed = false;

    lane_event exited;
    lane_mutex starting; ///< start and remove of one container, one after another
};

struct sandbox {
    store::SandboxRecord record;
    std::unique_ptr<launch::client> supervisor; ///< null when stopped or lost
    sdk::watch readable;                        ///< of the supervisor's descriptor
    std::map<std::string, std::shared_ptr<container>> containers;
    bool lost = false;    ///< its supervisor died by itself
    bool stopped = false; ///< StopPodSandbox has run to its end
    bool removed = false;
    lane_mutex changing; ///< create, stop and remove, one after another

    bool ready() const { return record.ready() && supervisor != nullptr && !stopped; }
};

using sandbox_ptr = std::shared_ptr<sandbox>;
using container_ptr = std::shared_ptr<container>;

} // namespace gantry::cri_native
