#include <cstdint>
#include <set>

#include "checker.hpp"
#include "gantry/model/defaults.hpp"
#include "gantry/model/names.hpp"
#include "validate_container.hpp"

namespace gantry::model {

namespace {

void check_metadata(checker& check, const object_meta& meta) {
    if (meta.name.empty())
        check.required("metadata.name");
    else
        check.rule("metadata.name", meta.name, check_dns_subdomain(meta.name));
    check.rule("metadata.namespace", meta.namespace_, check_dns_label(meta.namespace_));
    // The UID names directories and cgroups.
    const bool good = meta.uid.size() <= 64 &&
                      meta.uid.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-") ==
                          std::string::npos;
    if (!good) check.invalid("metadata.uid", meta.uid, "must be at most 64 letters, digits or '-'");
    for (const auto& [key, value] : meta.labels) {
        check.rule("metadata.labels", key, check_qualified_name(key));
        check.rule("metadata.labels", value, check_label_value(value));
    }
    std::size_t size = 0;
    for (const auto& [key, value] : meta.annotations) {
        std::string lower = key;
        for (auto& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
        check.rule("metadata.annotations", key, check_qualified_name(lower));
        size += key.size() + value.size();
    }
    if (size > 256 * 1024)
        check.invalid("metadata.annotations", std::to_string(size) + " bytes", "must have at most 262144 bytes");
}

void check_dns(checker& check, const pod_spec& spec) {
    check.one_of("spec.dnsPolicy", spec.dns_policy, {"ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"});
    if (spec.dns_policy == "None" && (!spec.dns_config || spec.dns_config->nameservers.empty()))
        check.required("spec.dnsConfig.nameservers",
                       "must provide at least one DNS nameserver when `dnsPolicy` is None");
    if (!spec.dns_config) return;
    const auto& dns = *spec.dns_config;
    if (dns.nameservers.size() > 3)
        check.invalid("spec.dnsConfig.nameservers", std::to_string(dns.nameservers.size()) + " nameservers",
                      "must not have more than 3 nameservers");
    for (std::size_t i = 0; i < dns.nameservers.size(); ++i)
        check.rule(at("spec.dnsConfig.nameservers", i), dns.nameservers[i], check_ip(dns.nameservers[i]));
    std::size_t characters = dns.searches.empty() ? 0 : dns.searches.size() - 1;
    for (const auto& search : dns.searches) characters += search.size();
    if (dns.searches.size() > 32 || characters > 2048)
        check.invalid("spec.dnsConfig.searches", std::to_string(dns.searches.size()) + " search paths",
                      "must not have more than 32 search paths of 2048 characters in all");
    for (std::size_t i = 0; i < dns.searches.size(); ++i) {
        std::string_view search = dns.searches[i];
        if (search == ".") continue;
        if (search.ends_with('.')) search.remove_suffix(1);
        check.rule(at("spec.dnsConfig.searches", i), dns.searches[i], check_dns_subdomain(search));
    }
    for (std::size_t i = 0; i < dns.options.size(); ++i)
        if (dns.options[i].name.empty()) check.required(at("spec.dnsConfig.options", i), "must not be empty");
}

void check_security(checker& check, const pod_security_context& sc) {
    const std::string path = "spec.securityContext";
    if (sc.run_as_user) check.in_range(path + ".runAsUser", *sc.run_as_user, 0, max_id);
    if (sc.run_as_group) check.in_range(path + ".runAsGroup", *sc.run_as_group, 0, max_id);
    if (sc.fs_group) check.in_range(path + ".fsGroup", *sc.fs_group, 0, max_id);
    for (std::size_t i = 0; i < sc.supplemental_groups.size(); ++i)
        check.in_range(at(path + ".supplementalGroups", i), sc.supplemental_groups[i], 0, max_id);
    if (!sc.supplemental_groups_policy.empty())
        check.one_of(path + ".supplementalGroupsPolicy", sc.supplemental_groups_policy, {"Merge", "Strict"});
    if (!sc.fs_group_change_policy.empty())
        check.one_of(path + ".fsGroupChangePolicy", sc.fs_group_change_policy, {"Always", "OnRootMismatch"});
    std::set<std::string> names;
    for (std::size_t i = 0; i < sc.sysctls.size(); ++i) {
        const auto& name = sc.sysctls[i].name;
        const auto here = at(path + ".sysctls", i) + ".name";
        if (name.empty())
            check.required(here);
        else
            check.rule(here, name, check_sysctl_name(name));
        if (!names.insert(name).second) check.duplicate(here, name);
    }
    if (sc.seccomp_profile) {
        const auto& profile = *sc.seccomp_profile;
        check.one_of(path + ".seccompProfile.type", profile.type, {"Localhost", "RuntimeDefault", "Unconfined"});
        if (profile.type == "Localhost" && profile.localhost_profile.empty())
            check.required(path + ".seccompProfile.localhostProfile", "must be set when seccomp type is Localhost");
    }
}

void check_names_on_network(checker& check, const pod_spec& spec) {
    if (!spec.hostname.empty()) check.rule("spec.hostname", spec.hostname, check_dns_label(spec.hostname));
    if (!spec.subdomain.empty()) check.rule("spec.subdomain", spec.subdomain, check_dns_label(spec.subdomain));
    if (!spec.hostname_override.empty()) {
        check.rule("spec.hostnameOverride", spec.hostname_override, check_dns_subdomain(spec.hostname_override));
        if (spec.host_network)
            check.forbidden("spec.hostnameOverride", "may not be set when `hostNetwork` is true");
    }
    for (std::size_t i = 0; i < spec.host_aliases.size(); ++i) {
        const auto& alias = spec.host_aliases[i];
        check.rule(at("spec.hostAliases", i) + ".ip", alias.ip, check_ip(alias.ip));
        for (std::size_t j = 0; j < alias.hostnames.size(); ++j)
            check.rule(at(at("spec.hostAliases", i) + ".hostnames", j), alias.hostnames[j],
                       check_dns_subdomain(alias.hostnames[j]));
    }
}

} // namespace

field_errors validate(const pod& object) {
    field_errors errors;
    checker check(errors);
    const auto& spec = object.spec;

    if (object.kind != "Pod") check.one_of("kind", object.kind, {"Pod"});
    if (object.api_version != "v1") check.one_of("apiVersion", object.api_version, {"v1"});
    check_metadata(check, object.metadata);

    std::set<std::string> volumes;
    for (std::size_t i = 0; i < spec.volumes.size(); ++i) {
        const auto& v = spec.volumes[i];
        const auto here = at("spec.volumes", i) + ".name";
        if (v.name.empty())
            check.required(here);
        else
            check.rule(here, v.name, check_dns_label(v.name));
        if (!volumes.insert(v.name).second) check.duplicate(here, v.name);
    }

    std::set<std::string> names;
    std::set<std::string> ports;
    for (std::size_t i = 0; i < spec.containers.size(); ++i)
        check_container(check, at("spec.containers", i), spec.containers[i], {spec, false, names, ports});
    for (std::size_t i = 0; i < spec.init_containers.size(); ++i)
        check_container(check, at("spec.initContainers", i), spec.init_containers[i], {spec, true, names, ports});
    if (spec.containers.empty()) check.required("spec.containers");
    if (spec.ephemeral_containers)
        check.forbidden("spec.ephemeralContainers", "cannot be set on create");

    check.one_of("spec.restartPolicy", spec.restart_policy, {"Always", "Never", "OnFailure"});
    if (spec.termination_grace_period_seconds.value_or(0) < 0)
        check.invalid("spec.terminationGracePeriodSeconds", *spec.termination_grace_period_seconds,
                      "must be greater than or equal to 0");
    if (spec.active_deadline_seconds)
        check.in_range("spec.activeDeadlineSeconds", *spec.active_deadline_seconds, 1, max_id);
    check_dns(check, spec);
    if (spec.security_context) check_security(check, *spec.security_context);
    check_names_on_network(check, spec);
    for (const auto& [key, value] : spec.node_selector) {
        check.rule("spec.nodeSelector", key, check_qualified_name(key));
        check.rule("spec.nodeSelector", value, check_label_value(value));
    }
    if (spec.share_process_namespace == true && spec.host_pid)
        check.invalid("spec.shareProcessNamespace", "true",
                      "ShareProcessNamespace and HostPID cannot both be enabled");
    for (std::size_t i = 0; i < spec.readiness_gates.size(); ++i)
        check.rule(at("spec.readinessGates", i) + ".conditionType", spec.readiness_gates[i].condition_type,
                   check_qualified_name(spec.readiness_gates[i].condition_type));
    if (!spec.runtime_class_name.empty())
        check.rule("spec.runtimeClassName", spec.runtime_class_name, check_dns_subdomain(spec.runtime_class_name));
    if (spec.os) check.one_of("spec.os.name", spec.os->name, {"linux", "windows"});
    if (spec.resources) check_resources(check, "spec.resources", *spec.resources);
    return errors;
}

} // namespace gantry::model
