// v1 Pod.
#pragma once

#include "container.hpp"
#include "pod_status.hpp"

namespace gantry::model {

struct sysctl {
    std::string name{};
    std::string value{};
    unknown_fields unknown{};

    friend bool operator==(const sysctl&, const sysctl&) = default;
};
BOOST_DESCRIBE_STRUCT(sysctl, (), (name, value, unknown))

struct pod_security_context {
    box<struct se_linux_options> se_linux_options{};
    std::optional<std::int64_t> run_as_user{};
    std::optional<std::int64_t> run_as_group{};
    std::optional<bool> run_as_non_root{};
    std::vector<std::int64_t> supplemental_groups{};
    std::string supplemental_groups_policy{};
    std::optional<std::int64_t> fs_group{};
    std::string fs_group_change_policy{};
    std::vector<sysctl> sysctls{};
    box<security_profile> seccomp_profile{};
    box<security_profile> app_armor_profile{};
    unknown_fields unknown{};

    friend bool operator==(const pod_security_context&, const pod_security_context&) = default;
};
BOOST_DESCRIBE_STRUCT(pod_security_context, (),
                      (se_linux_options, run_as_user, run_as_group, run_as_non_root, supplemental_groups,
                       supplemental_groups_policy, fs_group, fs_group_change_policy, sysctls, seccomp_profile,
                       app_armor_profile, unknown))

struct host_alias {
    std::string ip{};
    std::vector<std::string> hostnames{};
    unknown_fields unknown{};

    friend bool operator==(const host_alias&, const host_alias&) = default;
};
BOOST_DESCRIBE_STRUCT(host_alias, (), (ip, hostnames, unknown))

struct dns_option {
    std::string name{};
    std::optional<std::string> value{};
    unknown_fields unknown{};

    friend bool operator==(const dns_option&, const dns_option&) = default;
};
BOOST_DESCRIBE_STRUCT(dns_option, (), (name, value, unknown))

struct pod_dns_config {
    std::vector<std::string> nameservers{};
    std::vector<std::string> searches{};
    std::vector<dns_option> options{};
    unknown_fields unknown{};

    friend bool operator==(const pod_dns_config&, const pod_dns_config&) = default;
};
BOOST_DESCRIBE_STRUCT(pod_dns_config, (), (nameservers, searches, options, unknown))

struct readiness_gate {
    std::string condition_type{};
    unknown_fields unknown{};

    friend bool operator==(const readiness_gate&, const readiness_gate&) = default;
};
BOOST_DESCRIBE_STRUCT(readiness_gate, (), (condition_type, unknown))

struct pod_os {
    std::string name{};
    unknown_fields unknown{};

    friend bool operator==(const pod_os&, const pod_os&) = default;
};
BOOST_DESCRIBE_STRUCT(pod_os, (), (name, unknown))

/// Where the data comes from (emptyDir, hostPath, ...) stays in `unknown`, one member named after the source.
struct volume {
    std::string name{};
    unknown_fields unknown{};

    friend bool operator==(const volume&, const volume&) = default;
};
BOOST_DESCRIBE_STRUCT(volume, (), (name, unknown))

struct pod_spec {
    std::vector<volume> volumes{};
    std::vector<container> init_containers{};
    std::vector<container> containers{};
    raw_json ephemeral_containers{};
    std::string restart_policy{};
    std::optional<std::int64_t> termination_grace_period_seconds{};
    std::optional<std::int64_t> active_deadline_seconds{};
    std::string dns_policy{};
    string_map node_selector{};
    std::string service_account_name{};
    std::optional<bool> automount_service_account_token{};
    std::string node_name{};
    bool host_network = false;
    bool host_pid = false;
    bool host_ipc = false;
    std::optional<bool> share_process_namespace{};
    std::optional<bool> host_users{};
    box<pod_security_context> security_context{};
    raw_json image_pull_secrets{};
    std::string hostname{};
    std::string subdomain{};
    std::string hostname_override{};
    std::optional<bool> set_hostname_as_fqdn{};
    raw_json affinity{};
    std::string scheduler_name{};
    std::vector<host_alias> host_aliases{};
    std::optional<std::int64_t> priority{};
    box<pod_dns_config> dns_config{};
    std::vector<readiness_gate> readiness_gates{};
    std::string runtime_class_name{};
    std::optional<bool> enable_service_links{};
    resource_list overhead{};
    box<pod_os> os{};
    raw_json resource_claims{};
    box<resource_requirements> resources{};
    unknown_fields unknown{};

    friend bool operator==(const pod_spec&, const pod_spec&) = default;
};
BOOST_DESCRIBE_STRUCT(pod_spec, (),
                      (volumes, init_containers, containers, ephemeral_containers, restart_policy,
                       termination_grace_period_seconds, active_deadline_seconds, dns_policy, node_selector,
                       service_account_name, automount_service_account_token, node_name, host_network, host_pid,
                       host_ipc, share_process_namespace, host_users, security_context, image_pull_secrets, hostname,
                       subdomain, hostname_override, set_hostname_as_fqdn, affinity, scheduler_name, host_aliases,
                       priority, dns_config, readiness_gates, runtime_class_name, enable_service_links, overhead, os,
                       resource_claims, resources, unknown))

struct pod {
    std::string api_version = "v1";
    std::string kind = "Pod";
    object_meta metadata{};
    pod_spec spec{};
    pod_status status{};
    unknown_fields unknown{};

    friend bool operator==(const pod&, const pod&) = default;
};
BOOST_DESCRIBE_STRUCT(pod, (), (api_version, kind, metadata, spec, status, unknown))

} // namespace gantry::model
