// v1 Container and what hangs below it. Field names follow the API in snake_case; a member that the API leaves out when
// it is empty is empty here, too.
#pragma once

#include "meta.hpp"

namespace gantry::model {

struct container_port {
    std::string name{};
    std::int64_t host_port = 0;
    std::int64_t container_port = 0;
    std::string protocol{};
    std::string host_ip{};
    unknown_fields unknown{};

    friend bool operator==(const struct container_port&, const struct container_port&) = default;
};
BOOST_DESCRIBE_STRUCT(container_port, (), (name, host_port, container_port, protocol, host_ip, unknown))

struct object_field_selector {
    std::string api_version{};
    std::string field_path{};
    unknown_fields unknown{};

    friend bool operator==(const object_field_selector&, const object_field_selector&) = default;
};
BOOST_DESCRIBE_STRUCT(object_field_selector, (), (api_version, field_path, unknown))

struct resource_field_selector {
    std::string container_name{};
    std::string resource{};
    std::optional<quantity> divisor{};
    unknown_fields unknown{};

    friend bool operator==(const resource_field_selector&, const resource_field_selector&) = default;
};
BOOST_DESCRIBE_STRUCT(resource_field_selector, (), (container_name, resource, divisor, unknown))

struct env_var_source {
    box<object_field_selector> field_ref{};
    box<resource_field_selector> resource_field_ref{};
    raw_json config_map_key_ref{};
    raw_json secret_key_ref{};
    raw_json file_key_ref{};
    unknown_fields unknown{};

    friend bool operator==(const env_var_source&, const env_var_source&) = default;
};
BOOST_DESCRIBE_STRUCT(env_var_source, (),
                      (field_ref, resource_field_ref, config_map_key_ref, secret_key_ref, file_key_ref, unknown))

struct env_var {
    std::string name{};
    std::string value{};
    box<env_var_source> value_from{};
    unknown_fields unknown{};

    friend bool operator==(const env_var&, const env_var&) = default;
};
BOOST_DESCRIBE_STRUCT(env_var, (), (name, value, value_from, unknown))

struct env_from_source {
    std::string prefix{};
    raw_json config_map_ref{};
    raw_json secret_ref{};
    unknown_fields unknown{};

    friend bool operator==(const env_from_source&, const env_from_source&) = default;
};
BOOST_DESCRIBE_STRUCT(env_from_source, (), (prefix, config_map_ref, secret_ref, unknown))

struct resource_requirements {
    resource_list limits{};
    resource_list requests{};
    raw_json claims{};
    unknown_fields unknown{};

    friend bool operator==(const resource_requirements&, const resource_requirements&) = default;
};
BOOST_DESCRIBE_STRUCT(resource_requirements, (), (limits, requests, claims, unknown))

struct volume_mount {
    std::string name{};
    std::string mount_path{};
    unknown_fields unknown{};

    friend bool operator==(const volume_mount&, const volume_mount&) = default;
};
BOOST_DESCRIBE_STRUCT(volume_mount, (), (name, mount_path, unknown))

struct capabilities {
    std::vector<std::string> add{};
    std::vector<std::string> drop{};
    unknown_fields unknown{};

    friend bool operator==(const capabilities&, const capabilities&) = default;
};
BOOST_DESCRIBE_STRUCT(capabilities, (), (add, drop, unknown))

/// SeccompProfile and AppArmorProfile have the same shape.
struct security_profile {
    std::string type{};
    std::string localhost_profile{};
    unknown_fields unknown{};

    friend bool operator==(const security_profile&, const security_profile&) = default;
};
BOOST_DESCRIBE_STRUCT(security_profile, (), (type, localhost_profile, unknown))

struct se_linux_options {
    std::string user{};
    std::string role{};
    std::string type{};
    std::string level{};
    unknown_fields unknown{};

    friend bool operator==(const se_linux_options&, const se_linux_options&) = default;
};
BOOST_DESCRIBE_STRUCT(se_linux_options, (), (user, role, type, level, unknown))

/// SecurityContext of a container.
struct security_context {
    box<struct capabilities> capabilities{};
    std::optional<bool> privileged{};
    box<struct se_linux_options> se_linux_options{};
    std::optional<std::int64_t> run_as_user{};
    std::optional<std::int64_t> run_as_group{};
    std::optional<bool> run_as_non_root{};
    std::optional<bool> read_only_root_filesystem{};
    std::optional<bool> allow_privilege_escalation{};
    std::string proc_mount{};
    box<security_profile> seccomp_profile{};
    box<security_profile> app_armor_profile{};
    unknown_fields unknown{};

    friend bool operator==(const security_context&, const security_context&) = default;
};
BOOST_DESCRIBE_STRUCT(security_context, (),
                      (capabilities, privileged, se_linux_options, run_as_user, run_as_group, run_as_non_root,
                       read_only_root_filesystem, allow_privilege_escalation, proc_mount, seccomp_profile,
                       app_armor_profile, unknown))

struct lifecycle {
    raw_json post_start{};
    raw_json pre_stop{};
    std::string stop_signal{};
    unknown_fields unknown{};

    friend bool operator==(const lifecycle&, const lifecycle&) = default;
};
BOOST_DESCRIBE_STRUCT(lifecycle, (), (post_start, pre_stop, stop_signal, unknown))

struct container {
    std::string name{};
    std::string image{};
    std::vector<std::string> command{};
    std::vector<std::string> args{};
    std::string working_dir{};
    std::vector<container_port> ports{};
    std::vector<env_from_source> env_from{};
    std::vector<env_var> env{};
    box<resource_requirements> resources{};
    std::string restart_policy{}; ///< empty: the pod's policy holds
    raw_json restart_policy_rules{};
    std::vector<volume_mount> volume_mounts{};
    raw_json volume_devices{};
    raw_json liveness_probe{};
    raw_json readiness_probe{};
    raw_json startup_probe{};
    box<struct lifecycle> lifecycle{};
    std::string termination_message_path{};
    std::string termination_message_policy{};
    std::string image_pull_policy{};
    box<struct security_context> security_context{};
    bool stdin_ = false;
    bool stdin_once = false;
    bool tty = false;
    unknown_fields unknown{};

    friend bool operator==(const container&, const container&) = default;
};
BOOST_DESCRIBE_STRUCT(container, (),
                      (name, image, command, args, working_dir, ports, env_from, env, resources, restart_policy,
                       restart_policy_rules, volume_mounts, volume_devices, liveness_probe, readiness_probe,
                       startup_probe, lifecycle, termination_message_path, termination_message_policy,
                       image_pull_policy, security_context, stdin_, stdin_once, tty, unknown))

} // namespace gantry::model
