// v1 PodStatus. Times are RFC 3339 text with whole seconds, as the API writes them.
#pragma once

#include "meta.hpp"

namespace gantry::model {

struct pod_condition {
    std::string type{};
    std::string status{}; ///< "True", "False", "Unknown"
    std::string last_probe_time{};
    std::string last_transition_time{};
    std::string reason{};
    std::string message{};
    std::int64_t observed_generation = 0;
    unknown_fields unknown{};

    friend bool operator==(const pod_condition&, const pod_condition&) = default;
};
BOOST_DESCRIBE_STRUCT(pod_condition, (),
                      (type, status, last_probe_time, last_transition_time, reason, message, observed_generation,
                       unknown))

struct container_state_waiting {
    std::string reason{};
    std::string message{};
    unknown_fields unknown{};

    friend bool operator==(const container_state_waiting&, const container_state_waiting&) = default;
};
BOOST_DESCRIBE_STRUCT(container_state_waiting, (), (reason, message, unknown))

struct container_state_running {
    std::string started_at{};
    unknown_fields unknown{};

    friend bool operator==(const container_state_running&, const container_state_running&) = default;
};
BOOST_DESCRIBE_STRUCT(container_state_running, (), (started_at, unknown))

struct container_state_terminated {
    always<std::int32_t> exit_code{};
    std::int32_t signal = 0;
    std::string reason{};
    std::string message{};
    std::string started_at{};
    std::string finished_at{};
    std::string container_id{};
    unknown_fields unknown{};

    friend bool operator==(const container_state_terminated&, const container_state_terminated&) = default;
};
BOOST_DESCRIBE_STRUCT(container_state_terminated, (),
                      (exit_code, signal, reason, message, started_at, finished_at, container_id, unknown))

/// At most one member is set.
struct container_state {
    box<container_state_waiting> waiting{};
    box<container_state_running> running{};
    box<container_state_terminated> terminated{};
    unknown_fields unknown{};

    friend bool operator==(const container_state&, const container_state&) = default;
};
BOOST_DESCRIBE_STRUCT(container_state, (), (waiting, running, terminated, unknown))

struct container_status {
    std::string name{};
    always<container_state> state{};
    always<container_state> last_state{};
    always<bool> ready{};
    always<std::int32_t> restart_count{};
    always<std::string> image{};
    always<std::string> image_id{};
    std::string container_id{};
    std::optional<bool> started{};
    resource_list allocated_resources{};
    raw_json resources{};
    unknown_fields unknown{};

    friend bool operator==(const container_status&, const container_status&) = default;
};
BOOST_DESCRIBE_STRUCT(container_status, (),
                      (name, state, last_state, ready, restart_count, image, image_id, container_id, started,
                       allocated_resources, resources, unknown))

struct pod_ip {
    std::string ip{};
    unknown_fields unknown{};

    friend bool operator==(const pod_ip&, const pod_ip&) = default;
};
BOOST_DESCRIBE_STRUCT(pod_ip, (), (ip, unknown))

struct pod_status {
    std::int64_t observed_generation = 0;
    std::string phase{};
    std::vector<pod_condition> conditions{};
    std::string message{};
    std::string reason{};
    std::string host_ip{};
    std::vector<struct pod_ip> host_ips{};
    std::string pod_ip{};
    std::vector<struct pod_ip> pod_ips{};
    std::string start_time{};
    std::vector<container_status> init_container_statuses{};
    std::vector<container_status> container_statuses{};
    std::string qos_class{};
    unknown_fields unknown{};

    friend bool operator==(const pod_status&, const pod_status&) = default;
};
BOOST_DESCRIBE_STRUCT(pod_status, (),
                      (observed_generation, phase, conditions, message, reason, host_ip, host_ips, pod_ip, pod_ips,
                       start_time, init_container_statuses, container_statuses, qos_class, unknown))

} // namespace gantry::model
