#include "validate_container.hpp"

#include <cstdint>

#include "gantry/model/names.hpp"

namespace gantry::model {

namespace {

bool space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

void check_ports(checker& check, const std::string& path, const container& c, const container_scope& scope) {
    std::set<std::string> names;
    std::set<std::string> own;
    for (std::size_t i = 0; i < c.ports.size(); ++i) {
        const auto& port = c.ports[i];
        const auto here = at(path + ".ports", i);
        if (!port.name.empty()) {
            check.rule(here + ".name", port.name, check_port_name(port.name));
            if (!names.insert(port.name).second) check.duplicate(here + ".name", port.name);
        }
        if (port.container_port == 0)
            check.required(here + ".containerPort");
        else
            check.in_range(here + ".containerPort", port.container_port, 1, 65535);
        check.one_of(here + ".protocol", port.protocol, {"SCTP", "TCP", "UDP"});
        if (!port.host_ip.empty()) check.rule(here + ".hostIP", port.host_ip, check_ip(port.host_ip));
        if (port.host_port == 0) continue;
        check.in_range(here + ".hostPort", port.host_port, 1, 65535);
        if (scope.spec.host_network && port.host_port != port.container_port)
            check.invalid(here + ".hostPort", port.host_port,
                          "must match `containerPort` when `hostNetwork` is true");
        // Init containers run one at a time, so only their own ports can collide.
        auto& taken = scope.init ? own : scope.host_ports;
        const auto key = port.protocol + "/" + port.host_ip + "/" + std::to_string(port.host_port);
        if (!taken.insert(key).second) check.duplicate(here + ".hostPort", key);
    }
}

void check_field_ref(checker& check, const std::string& path, const object_field_selector& ref) {
    const auto& field = ref.field_path;
    if (field.empty()) return check.required(path + ".fieldPath");
    if (field.ends_with("']") && (field.starts_with("metadata.labels['") || field.starts_with("metadata.annotations['"))) {
        const auto key = field.substr(field.find('\'') + 1, field.size() - field.find('\'') - 3);
        return check.rule(path + ".fieldPath", field, check_qualified_name(key));
    }
    check.one_of(path + ".fieldPath", field,
                 {"metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName",
                  "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs"});
}

void check_resource_ref(checker& check, const std::string& path, const resource_field_selector& ref,
                        const pod_spec& spec) {
    if (ref.resource.empty()) check.required(path + ".resource");
    const bool listed = ref.resource.starts_with("limits.hugepages-") || ref.resource.starts_with("requests.hugepages-");
    if (!ref.resource.empty() && !listed)
        check.one_of(path + ".resource", ref.resource,
                     {"limits.cpu", "limits.ephemeral-storage", "limits.memory", "requests.cpu",
                      "requests.ephemeral-storage", "requests.memory"});
    if (ref.container_name.empty()) return;
    for (const auto* list : {&spec.init_containers, &spec.containers})
        for (const auto& c : *list)
            if (c.name == ref.container_name) return;
    check.not_found(path + ".containerName", ref.container_name);
}

void check_env(checker& check, const std::string& path, const container& c, const pod_spec& spec) {
    for (std::size_t i = 0; i < c.env.size(); ++i) {
        const auto& var = c.env[i];
        const auto here = at(path + ".env", i);
        if (var.name.empty())
            check.required(here + ".name");
        else
            check.rule(here + ".name", var.name, check_env_name(var.name));
        if (!var.value_from) continue;
        const auto& from = *var.value_from;
        const auto source = here + ".valueFrom";
        const int given = bool(from.field_ref) + bool(from.resource_field_ref) + bool(from.config_map_key_ref) +
                          bool(from.secret_key_ref) + bool(from.file_key_ref);
        if (!var.value.empty()) check.invalid(source, "", "may not be specified when `value` is not empty");
        if (given == 0)
            check.invalid(source, "",
                          "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or "
                          "`fileKeyRef`");
        else if (given > 1)
            check.invalid(source, "", "may not have more than one field specified at a time");
        if (from.field_ref) check_field_ref(check, source + ".fieldRef", *from.field_ref);
        if (from.resource_field_ref)
            check_resource_ref(check, source + ".resourceFieldRef", *from.resource_field_ref, spec);
    }
    for (std::size_t i = 0; i < c.env_from.size(); ++i) {
        const auto& from = c.env_from[i];
        const auto here = at(path + ".envFrom", i);
        if (!from.prefix.empty()) check.rule(here + ".prefix", from.prefix, check_env_name(from.prefix));
        if (!from.config_map_ref && !from.secret_ref)
            check.invalid(here, "", "must specify one of: `configMapRef` or `secretRef`");
        if (from.config_map_ref && from.secret_ref)
            check.invalid(here, "", "may not have more than one field specified at a time");
    }
}

void check_security(checker& check, const std::string& path, const security_context& sc) {
    if (sc.run_as_user) check.in_range(path + ".runAsUser", *sc.run_as_user, 0, max_id);
    if (sc.run_as_group) check.in_range(path + ".runAsGroup", *sc.run_as_group, 0, max_id);
    if (!sc.proc_mount.empty()) check.one_of(path + ".procMount", sc.proc_mount, {"Default", "Unmasked"});
    if (sc.allow_privilege_escalation == false) {
        if (sc.privileged == true)
            check.invalid(path, "", "cannot set `allowPrivilegeEscalation` to false and `privileged` to true");
        if (sc.capabilities)
            for (const auto& cap : sc.capabilities->add)
                if (cap == "CAP_SYS_ADMIN" || cap == "SYS_ADMIN")
                    check.invalid(path, "",
                                  "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` "
                                  "CAP_SYS_ADMIN");
    }
    if (sc.seccomp_profile) {
        const auto& profile = *sc.seccomp_profile;
        const auto here = path + ".seccompProfile";
        check.one_of(here + ".type", profile.type, {"Localhost", "RuntimeDefault", "Unconfined"});
        if (profile.type == "Localhost" && profile.localhost_profile.empty())
            check.required(here + ".localhostProfile", "must be set when seccomp type is Localhost");
    }
}

void check_mounts(checker& check, const std::string& path, const container& c, const pod_spec& spec) {
    std::set<std::string> paths;
    for (std::size_t i = 0; i < c.volume_mounts.size(); ++i) {
        const auto& mount = c.volume_mounts[i];
        const auto here = at(path + ".volumeMounts", i);
        if (mount.name.empty()) check.required(here + ".name");
        if (mount.mount_path.empty()) check.required(here + ".mountPath");
        if (!mount.mount_path.empty() && !paths.insert(mount.mount_path).second)
            check.invalid(here + ".mountPath", mount.mount_path, "must be unique");
        bool found = mount.name.empty();
        for (const auto& v : spec.volumes) found = found || v.name == mount.name;
        if (!found) check.not_found(here + ".name", mount.name);
    }
}

bool is_integer_resource(std::string_view name) {
    return name != "cpu" && name != "memory" && name != "ephemeral-storage";
}

} // namespace

void check_resources(checker& check, const std::string& path, const resource_requirements& resources) {
    const auto keyed = [](const std::string& base, const std::string& name) {
        return name.find_first_of("./") == std::string::npos ? base + "." + name : base + "[" + name + "]";
    };
    const auto amounts = [&](const std::string& base, const resource_list& list) {
        for (const auto& [name, amount] : list) {
            const auto here = keyed(base, name);
            check.rule(base, name, check_qualified_name(name));
            if (amount.is_negative())
                check.invalid(here, amount.to_string(), "must be greater than or equal to 0");
            else if (is_integer_resource(name) && !amount.is_whole())
                check.invalid(here, amount.to_string(), "must be an integer");
        }
    };
    amounts(path + ".limits", resources.limits);
    amounts(path + ".requests", resources.requests);
    for (const auto& [name, request] : resources.requests) {
        const auto limit = resources.limits.find(name);
        if (limit != resources.limits.end() && request > limit->second)
            check.invalid(path + ".requests", request.to_string(),
                          "must be less than or equal to " + name + " limit of " + limit->second.to_string());
    }
}

void check_container(checker& check, const std::string& path, const container& c, const container_scope& scope) {
    if (c.name.empty()) {
        check.required(path + ".name");
    } else {
        check.rule(path + ".name", c.name, check_dns_label(c.name));
        if (!scope.names.insert(c.name).second) check.duplicate(path + ".name", c.name);
    }
    if (c.image.empty())
        check.required(path + ".image");
    else if (space(c.image.front()) || space(c.image.back()))
        check.invalid(path + ".image", c.image, "must not have leading or trailing whitespace");
    check.one_of(path + ".imagePullPolicy", c.image_pull_policy, {"Always", "IfNotPresent", "Never"});
    check.one_of(path + ".terminationMessagePolicy", c.termination_message_policy, {"FallbackToLogsOnError", "File"});
    if (!c.restart_policy.empty())
        check.one_of(path + ".restartPolicy", c.restart_policy, {"Always", "Never", "OnFailure"});
    check_ports(check, path, c, scope);
    check_env(check, path, c, scope.spec);
    check_mounts(check, path, c, scope.spec);
    if (c.resources) check_resources(check, path + ".resources", *c.resources);
    if (c.security_context) check_security(check, path + ".securityContext", *c.security_context);
    if (scope.init && c.restart_policy != "Always") {
        constexpr std::string_view why = "may not be set for init containers without restartPolicy=Always";
        if (c.liveness_probe) check.forbidden(path + ".livenessProbe", std::string(why));
        if (c.readiness_probe) check.forbidden(path + ".readinessProbe", std::string(why));
        if (c.startup_probe) check.forbidden(path + ".startupProbe", std::string(why));
        if (c.lifecycle && (c.lifecycle->post_start || c.lifecycle->pre_stop))
            check.forbidden(path + ".lifecycle", std::string(why));
    }
}

} // namespace gantry::model
