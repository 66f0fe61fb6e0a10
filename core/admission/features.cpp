#include "base/json.hpp"
#include "core/admission/admission.hpp"

namespace gantry::core {

namespace {

rejection unsupported(const std::string& field, const std::string& why) {
    return {.reason = "PodFeatureUnsupported", .message = field + ": " + why};
}

std::string needs(const char* capability) {
    return std::string("needs a plugin that offers ") + capability + ", and this node binds none";
}

std::string indexed(const std::string& list, std::size_t i) { return list + "[" + std::to_string(i) + "]"; }

/// The member of a volume that says where its data comes from.
std::string volume_source(const model::volume& v) {
    if (!v.unknown) return "emptyDir";
    const auto json = base::parse_json(*v.unknown, "volume");
    if (!json || !json->is_object() || json->get_object().empty()) return "emptyDir";
    return std::string(json->get_object().begin()->key());
}

std::optional<rejection> check_container(const model::container& c, const std::string& path,
                                         const bound_capabilities& bound) {
    if (!bound.probes) {
        if (c.startup_probe) return unsupported(path + ".startupProbe", needs("gantry.probe"));
        if (c.liveness_probe) return unsupported(path + ".livenessProbe", needs("gantry.probe"));
        if (c.readiness_probe) return unsupported(path + ".readinessProbe", needs("gantry.probe"));
    }
    if (!bound.volumes) {
        if (!c.volume_mounts.empty()) return unsupported(path + ".volumeMounts", needs("gantry.volume"));
        if (c.volume_devices) return unsupported(path + ".volumeDevices", needs("gantry.volume"));
    }
    for (std::size_t i = 0; i < c.env.size(); ++i) {
        const auto& from = c.env[i].value_from;
        if (!from) continue;
        const auto here = indexed(path + ".env", i) + ".valueFrom";
        if (!bound.objects && from->config_map_key_ref)
            return unsupported(here + ".configMapKeyRef", needs("gantry.objects"));
        if (!bound.objects && from->secret_key_ref) return unsupported(here + ".secretKeyRef", needs("gantry.objects"));
        if (!bound.volumes && from->file_key_ref) return unsupported(here + ".fileKeyRef", needs("gantry.volume"));
    }
    if (!bound.objects && !c.env_from.empty())
        return unsupported(indexed(path + ".envFrom", 0), needs("gantry.objects"));
    if (c.lifecycle && c.lifecycle->post_start)
        return unsupported(path + ".lifecycle.postStart", "lifecycle hooks are not supported by this version");
    if (c.lifecycle && c.lifecycle->pre_stop)
        return unsupported(path + ".lifecycle.preStop", "lifecycle hooks are not supported by this version");
    if (c.restart_policy_rules)
        return unsupported(path + ".restartPolicyRules", "rules by exit code are not supported by this version");
    if (c.resources && c.resources->claims)
        return unsupported(path + ".resources.claims", "dynamic resource allocation is not supported by this version");
    return std::nullopt;
}

} // namespace

std::optional<rejection> check_features(const model::pod_spec& spec, const bound_capabilities& bound) {
    if (!bound.volumes && !spec.volumes.empty())
        return unsupported(indexed("spec.volumes", 0) + " (" + volume_source(spec.volumes[0]) + ")",
                           needs("gantry.volume"));
    if (!bound.objects) {
        if (spec.image_pull_secrets) return unsupported("spec.imagePullSecrets", needs("gantry.objects"));
        if (!spec.service_account_name.empty())
            return unsupported("spec.serviceAccountName", needs("gantry.objects"));
    }
    if (spec.host_users == false)
        return unsupported("spec.hostUsers", "user namespaces are not supported by this version");
    if (spec.resource_claims)
        return unsupported("spec.resourceClaims", "dynamic resource allocation is not supported by this version");
    for (std::size_t i = 0; i < spec.init_containers.size(); ++i)
        if (auto no = check_container(spec.init_containers[i], indexed("spec.initContainers", i), bound)) return no;
    for (std::size_t i = 0; i < spec.containers.size(); ++i)
        if (auto no = check_container(spec.containers[i], indexed("spec.containers", i), bound)) return no;
    return std::nullopt;
}

} // namespace gantry::core
