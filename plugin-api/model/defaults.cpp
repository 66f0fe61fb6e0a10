#include "gantry/model/defaults.hpp"

#include <boost/json.hpp>

#include "gantry/model/json.hpp"

namespace gantry::model {

namespace {

/// The API pulls what may change behind its name: no tag, or :latest.
std::string default_pull_policy(std::string_view image) {
    const auto at = image.find('@');
    auto name = image.substr(0, at);
    name = name.substr(name.find_last_of('/') + 1);
    const auto colon = name.find(':');
    if (colon == std::string_view::npos) return at == std::string_view::npos ? "Always" : "IfNotPresent";
    return name.substr(colon + 1) == "latest" ? "Always" : "IfNotPresent";
}

void fill(std::string& member, std::string_view value) {
    if (member.empty()) member = value;
}

void set_defaults(resource_requirements& resources) {
    for (const auto& [name, limit] : resources.limits) resources.requests.try_emplace(name, limit);
}

void set_defaults(container& c, bool host_network) {
    fill(c.image_pull_policy, default_pull_policy(c.image));
    fill(c.termination_message_path, "/dev/termination-log");
    fill(c.termination_message_policy, "File");
    for (auto& port : c.ports) {
        fill(port.protocol, "TCP");
        if (host_network && port.host_port == 0) port.host_port = port.container_port;
    }
    for (auto& var : c.env) {
        if (!var.value_from) continue;
        if (var.value_from->field_ref) fill(var.value_from->field_ref->api_version, "v1");
        if (var.value_from->resource_field_ref && !var.value_from->resource_field_ref->divisor)
            var.value_from->resource_field_ref->divisor.emplace();
    }
    if (c.resources) set_defaults(*c.resources);
}

} // namespace

void set_defaults(pod& object) {
    auto& spec = object.spec;
    fill(object.metadata.namespace_, "default");
    fill(spec.restart_policy, "Always");
    fill(spec.dns_policy, "ClusterFirst");
    fill(spec.scheduler_name, "default-scheduler");
    if (!spec.termination_grace_period_seconds) spec.termination_grace_period_seconds = 30;
    if (!spec.enable_service_links) spec.enable_service_links = true;
    spec.security_context.ensure();
    if (spec.resources) set_defaults(*spec.resources);
    for (auto& c : spec.init_containers) set_defaults(c, spec.host_network);
    for (auto& c : spec.containers) set_defaults(c, spec.host_network);
}

result<pod> admit_pod(std::string_view text, std::string_view what) {
    boost::system::error_code ec;
    boost::json::parse_options options;
    options.max_depth = 64;
    const auto json = boost::json::parse(text, ec, {}, options);
    if (ec) return error{.code = code::invalid, .message = std::string(what) + ": not JSON: " + ec.message()};
    field_errors errors;
    pod object = pod_from_json(json, errors);
    if (errors.empty()) {
        set_defaults(object);
        errors = validate(object);
    }
    if (!errors.empty())
        return error{.code = code::invalid,
                     .message = std::string(what) + ": " + describe(object.metadata.name, errors)};
    return object;
}

} // namespace gantry::model
