#include "core/pod/cri.hpp"

#include <algorithm>

#include "core/pod/names.hpp"
#include "core/pod/resources.hpp"
#include "core/pod/security.hpp"
#include "proto/cri.pb.h"

namespace gantry::core {

namespace cri = ::runtime::v1;

namespace {

base::wall_time from_unix_nanos(std::int64_t ns) { return base::wall_time(std::chrono::nanoseconds(ns)); }

model::quantity request_or_limit(const model::container& c, const std::string& name) {
    if (!c.resources) return {};
    const auto request = amount(c.resources->requests, name);
    return request.is_zero() ? amount(c.resources->limits, name) : request;
}

void fill_resources(cri::LinuxContainerResources& out, const model::pod& pod, const model::container& c,
                    const machine_facts& machine) {
    out.set_cpu_shares(cpu_shares(request_or_limit(c, "cpu").milli()));
    out.set_cpu_period(cpu_period_us);
    if (c.resources) {
        out.set_cpu_quota(cpu_quota(amount(c.resources->limits, "cpu").milli()));
        out.set_memory_limit_in_bytes(amount(c.resources->limits, "memory").units());
    }
    out.set_oom_score_adj(oom_score_adj(pod.spec, c, machine.memory_capacity));
    if (machine.cgroup_version == 2) (*out.mutable_unified())["memory.oom.group"] = "1";
}

void fill_pod_resources(cri::LinuxContainerResources& out, const model::pod_spec& spec) {
    const auto values = pod_cgroup(spec);
    out.set_cpu_period(cpu_period_us);
    out.set_cpu_shares(cpu_shares(values.cpu_request_milli));
    if (values.cpu_limit_milli) out.set_cpu_quota(cpu_quota(*values.cpu_limit_milli));
    if (values.memory_limit) out.set_memory_limit_in_bytes(*values.memory_limit);
}

/// SIGRTMIN+1 -> SIGNAL_SIGRTMINPLUS1.
cri::Signal signal_of(std::string name) {
    for (const auto& [sign, word] : {std::pair{'+', "PLUS"}, {'-', "MINUS"}})
        if (const auto at = name.find(sign); at != std::string::npos) name.replace(at, 1, word);
    cri::Signal out = cri::SIGNAL_RUNTIME_DEFAULT;
    return cri::Signal_Parse("SIGNAL_" + name, &out) ? out : cri::SIGNAL_RUNTIME_DEFAULT;
}

template <class Map>
void label(Map& out, const model::object_meta& meta) {
    out[cri_label::pod_name] = meta.name;
    out[cri_label::pod_namespace] = meta.namespace_;
    out[cri_label::pod_uid] = meta.uid;
}

bool mounts(const model::container& c, std::string_view path) {
    return std::any_of(c.volume_mounts.begin(), c.volume_mounts.end(),
                       [&](const model::volume_mount& m) { return m.mount_path == path; });
}

void add_mount(cri::ContainerConfig& out, const std::string& host, const std::string& container) {
    auto& mount = *out.add_mounts();
    mount.set_host_path(host);
    mount.set_container_path(container);
}

cri::Protocol protocol_of(const std::string& text) {
    if (text == "UDP") return cri::UDP;
    return text == "SCTP" ? cri::SCTP : cri::TCP;
}

} // namespace

result<void> fill_container_config(cri::ContainerConfig& out, const model::pod& pod, const model::container& c,
                                   const container_facts& facts, const machine_facts& machine) {
    if (auto why = check_non_root(pod, c, facts.image); !why.empty())
        return error{.code = code::invalid, .message = std::move(why)};
    GANTRY_TRY(const auto env, make_env(pod, c, facts.env));

    out.mutable_metadata()->set_name(c.name);
    out.mutable_metadata()->set_attempt(facts.attempt);
    out.mutable_image()->set_image(facts.image.id);
    out.mutable_image()->set_user_specified_image(c.image);
    for (auto& item : expand_all(c.command, env)) out.add_command(std::move(item));
    for (auto& item : expand_all(c.args, env)) out.add_args(std::move(item));
    out.set_working_dir(c.working_dir);
    for (const auto& [name, value] : env) {
        auto& var = *out.add_envs();
        var.set_key(name);
        var.set_value(value);
    }
    if (!facts.hosts_path.empty() && !mounts(c, "/etc/hosts")) add_mount(out, facts.hosts_path, "/etc/hosts");
    if (!facts.termination_log_path.empty() && !mounts(c, c.termination_message_path))
        add_mount(out, facts.termination_log_path, c.termination_message_path);

    auto& labels = *out.mutable_labels();
    label(labels, pod.metadata);
    labels[cri_label::container_name] = c.name;
    auto& annotations = *out.mutable_annotations();
    annotations[cri_annotation::hash] = to_hex(container_hash(c));
    annotations[cri_annotation::restart_count] = std::to_string(facts.attempt);
    annotations[cri_annotation::termination_message_path] = c.termination_message_path;
    annotations[cri_annotation::termination_message_policy] = c.termination_message_policy;
    if (pod.spec.termination_grace_period_seconds)
        annotations[cri_annotation::grace_period] = std::to_string(*pod.spec.termination_grace_period_seconds);

    out.set_log_path(c.name + "/" + std::to_string(facts.attempt) + ".log");
    out.set_stdin(c.stdin_);
    out.set_stdin_once(c.stdin_once);
    out.set_tty(c.tty);
    if (c.lifecycle && !c.lifecycle->stop_signal.empty()) out.set_stop_signal(signal_of(c.lifecycle->stop_signal));
    fill_resources(*out.mutable_linux()->mutable_resources(), pod, c, machine);
    fill_security(*out.mutable_linux()->mutable_security_context(), pod, c, facts.image, machine);
    return {};
}

void fill_sandbox_config(cri::PodSandboxConfig& out, const model::pod& pod, const sandbox_facts& facts) {
    const auto& meta = pod.metadata;
    const auto& spec = pod.spec;
    out.mutable_metadata()->set_name(meta.name);
    out.mutable_metadata()->set_namespace_(meta.namespace_);
    out.mutable_metadata()->set_uid(meta.uid);
    out.mutable_metadata()->set_attempt(facts.attempt);
    out.set_hostname(spec.host_network ? std::string() : facts.hostname);
    out.set_log_directory(facts.log_dir);
    for (const auto& server : facts.dns.servers) out.mutable_dns_config()->add_servers(server);
    for (const auto& search : facts.dns.searches) out.mutable_dns_config()->add_searches(search);
    for (const auto& option : facts.dns.options) out.mutable_dns_config()->add_options(option);

    if (!spec.host_network)
        for (const auto* list : {&spec.containers, &spec.init_containers})
            for (const auto& c : *list)
                for (const auto& port : c.ports) {
                    if (port.host_port == 0) continue;
                    auto& mapping = *out.add_port_mappings();
                    mapping.set_protocol(protocol_of(port.protocol));
                    mapping.set_container_port(static_cast<std::int32_t>(port.container_port));
                    mapping.set_host_port(static_cast<std::int32_t>(port.host_port));
                    mapping.set_host_ip(port.host_ip);
                }

    auto& labels = *out.mutable_labels();
    for (const auto& [key, value] : meta.labels) labels[key] = value;
    label(labels, meta);
    for (const auto& [key, value] : meta.annotations) (*out.mutable_annotations())[key] = value;

    auto& linux_config = *out.mutable_linux();
    linux_config.set_cgroup_parent(facts.cgroup_parent);
    if (spec.security_context)
        for (const auto& s : spec.security_context->sysctls) {
            auto name = s.name;
            std::replace(name.begin(), name.end(), '/', '.');
            (*linux_config.mutable_sysctls())[name] = s.value;
        }
    fill_security(*linux_config.mutable_security_context(), pod);
    fill_pod_resources(*linux_config.mutable_resources(), spec);
    if (!spec.overhead.empty()) {
        auto& overhead = *linux_config.mutable_overhead();
        overhead.set_cpu_shares(cpu_shares(amount(spec.overhead, "cpu").milli()));
        overhead.set_cpu_quota(cpu_quota(amount(spec.overhead, "cpu").milli()));
        overhead.set_cpu_period(cpu_period_us);
        overhead.set_memory_limit_in_bytes(amount(spec.overhead, "memory").units());
    }
}

container_view to_view(const cri::ContainerStatus& status) {
    container_view out;
    out.id = status.id();
    out.name = status.metadata().name();
    out.attempt = status.metadata().attempt();
    out.image = status.image().user_specified_image().empty() ? status.image().image()
                                                              : status.image().user_specified_image();
    out.image_ref = status.image_ref().empty() ? status.image_id() : status.image_ref();
    out.log_path = status.log_path();
    out.reason = status.reason();
    out.message = status.message();
    out.created_at = from_unix_nanos(status.created_at());
    out.started_at = from_unix_nanos(status.started_at());
    out.finished_at = from_unix_nanos(status.finished_at());
    out.exit_code = status.exit_code();
    switch (status.state()) {
    case cri::CONTAINER_CREATED: out.phase = container_phase::created; break;
    case cri::CONTAINER_RUNNING: out.phase = container_phase::running; break;
    case cri::CONTAINER_EXITED: out.phase = container_phase::exited; break;
    default: out.phase = container_phase::unknown; break;
    }
    if (const auto hash = status.annotations().find(cri_annotation::hash); hash != status.annotations().end())
        out.hash = from_hex(hash->second);
    // Runtimes leave the reason to their clients when a process just ended.
    if (out.phase == container_phase::exited && out.reason.empty()) out.reason = out.exit_code == 0 ? "Completed" : "Error";
    return out;
}

sandbox_view to_view(const cri::PodSandboxStatus& status) {
    sandbox_view out;
    out.id = status.id();
    out.attempt = status.metadata().attempt();
    out.created_at = from_unix_nanos(status.created_at());
    out.ready = status.state() == cri::SANDBOX_READY;
    if (status.linux().namespaces().has_options())
        out.host_network = status.linux().namespaces().options().network() == cri::NODE;
    if (!status.network().ip().empty()) out.ips.push_back(status.network().ip());
    for (const auto& ip : status.network().additional_ips()) out.ips.push_back(ip.ip());
    return out;
}

} // namespace gantry::core
