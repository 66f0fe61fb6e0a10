// What the node shows of its pods: plain copies for the admin socket, the CLI and status sinks.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/kernel/kube_event.hpp"
#include "gantry/model/pod.hpp"

namespace gantry::core {

class plugin_client;

struct pod_summary {
    std::string uid{};
    std::string namespace_{};
    std::string name{};
    std::string phase{};
    std::string status{}; ///< what `kubectl get pods` prints as STATUS: phase, waiting or terminated reason, "Terminating"
    std::uint32_t containers = 0;
    std::uint32_t ready = 0;
    std::int32_t restarts = 0;
    std::string ip{};
    std::string source{}; ///< instance name of the pod source; empty for a pod that only the runtime knows
    wall_time start_time{};
};

/// What the pod is doing; the steps so far are in the host's op_journal under its UID.
struct pod_explanation {
    pod_summary summary{};
    std::string state{};       ///< "sync", "terminating", "terminated"
    std::string waiting_for{}; ///< the one thing that the pod waits for now; empty when it needs nothing
    wall_time retry_at{};    ///< when the next try is due; zero when an event will wake the pod
    std::vector<kube_event> events{};
};

/// Published on every change of a pod's status.
struct pod_change {
    std::uint64_t version = 0; ///< grows with every change of any pod on this node
    std::shared_ptr<const model::pod> pod{}; ///< spec as acted on
    std::shared_ptr<const model::pod_status> status{};
};

struct container_ref {
    plugin_client* runtime = nullptr;
    std::string id{};       ///< of the newest instance, or with `previous` of the one before
    std::string log_path{}; ///< absolute
    bool running = false;
};

struct source_health {
    std::string instance{};
    bool synced = false;
    std::string error{};               ///< why the watch is down, or empty
    std::vector<std::string> faults{}; ///< input that the source refuses, "where: why"
};

struct runtime_health {
    std::string instance{};
    bool ready = false; ///< its pods are known and its events flow
    std::string error{};
};

struct node_health {
    std::chrono::nanoseconds loop_lag{}; ///< since the SyncLoop last turned; healthy below 5 s
    std::vector<source_health> sources{};
    std::vector<runtime_health> runtimes{};
};

} // namespace gantry::core
