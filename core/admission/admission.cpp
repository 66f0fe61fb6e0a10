#include "core/admission/admission.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <tuple>

#include "core/admission/node_affinity.hpp"
#include "core/pod/resources.hpp"

namespace gantry::core {

namespace {

constexpr std::array<std::string_view, 12> safe_sysctls{"kernel.shm_rmid_forced",
                                                        "net.ipv4.ip_local_port_range",
                                                        "net.ipv4.tcp_syncookies",
                                                        "net.ipv4.ping_group_range",
                                                        "net.ipv4.ip_unprivileged_port_start",
                                                        "net.ipv4.ip_local_reserved_ports",
                                                        "net.ipv4.tcp_keepalive_time",
                                                        "net.ipv4.tcp_fin_timeout",
                                                        "net.ipv4.tcp_keepalive_intvl",
                                                        "net.ipv4.tcp_keepalive_probes",
                                                        "net.ipv4.tcp_rmem",
                                                        "net.ipv4.tcp_wmem"};

enum class sysctl_scope { none, ipc, net };

sysctl_scope scope_of(std::string_view name) {
    if (name.starts_with("net.")) return sysctl_scope::net;
    if (name.starts_with("kernel.shm") || name.starts_with("kernel.msg") || name == "kernel.sem" ||
        name.starts_with("fs.mqueue."))
        return sysctl_scope::ipc;
    return sysctl_scope::none;
}

bool allows(const std::string& pattern, std::string_view name) {
    return pattern.ends_with('*') ? name.starts_with(pattern.substr(0, pattern.size() - 1)) : name == pattern;
}

struct host_port {
    std::string protocol;
    std::string ip;
    std::int64_t port;
};

std::vector<host_port> host_ports(const model::pod_spec& spec) {
    std::vector<host_port> out;
    for (const auto& c : spec.containers)
        for (const auto& p : c.ports)
            if (p.host_port != 0) out.push_back({p.protocol, p.host_ip, p.host_port});
    return out;
}

bool any_address(const std::string& ip) { return ip.empty() || ip == "0.0.0.0" || ip == "::"; }

bool conflicts(const model::pod_spec& a, const model::pod_spec& b) {
    for (const auto& x : host_ports(a))
        for (const auto& y : host_ports(b))
            if (x.port == y.port && x.protocol == y.protocol && (any_address(x.ip) || any_address(y.ip) || x.ip == y.ip))
                return true;
    return false;
}

std::optional<rejection> check_ports(const model::pod& pod, const std::vector<admitted_pod>& others) {
    bool later = true, any = false;
    for (const auto& other : others)
        if (conflicts(pod.spec, other.pod->spec)) {
            any = true;
            later = later && other.ending;
        }
    if (!any) return std::nullopt;
    return rejection{.reason = "NodePorts",
                     .message = "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports",
                     .later = later};
}

std::int64_t wanted(const model::resource_list& requests, const char* name) {
    const auto value = amount(requests, name);
    return std::string_view(name) == "cpu" ? value.milli() : value.units();
}

std::optional<rejection> check_amounts(const model::pod& pod, const std::vector<admitted_pod>& others,
                                       const node_amounts& have) {
    const auto refuse = [](const std::string& name, std::int64_t request, std::int64_t used, std::int64_t capacity,
                           std::int64_t ending) {
        return rejection{.reason = "OutOf" + name,
                         .message = "Node didn't have enough resource: " + name + ", requested: " +
                                    std::to_string(request) + ", used: " + std::to_string(used) +
                                    ", capacity: " + std::to_string(capacity),
                         .later = request <= capacity - (used - ending)};
    };
    const auto count = static_cast<std::int64_t>(others.size());
    const auto ending = std::count_if(others.begin(), others.end(), [](const admitted_pod& o) { return o.ending; });
    if (have.pods > 0 && count + 1 > have.pods) return refuse("pods", 1, count, have.pods, ending);

    const auto requests = pod_requests(pod.spec);
    for (const auto& [name, capacity] : std::initializer_list<std::tuple<const char*, std::int64_t>>{
             {"cpu", have.cpu_milli}, {"memory", have.memory}, {"ephemeral-storage", have.ephemeral_storage}}) {
        const auto request = wanted(requests, name);
        if (request == 0) continue;
        std::int64_t used = 0, freed = 0;
        for (const auto& other : others) {
            const auto held = wanted(pod_requests(other.pod->spec), name);
            used += held;
            if (other.ending) freed += held;
        }
        if (request > capacity - used) return refuse(name, request, used, capacity, freed);
    }
    for (const auto& [name, value] : requests)
        if (name.starts_with("hugepages-") && !value.is_zero()) return refuse(name, value.units(), 0, 0, 0);
    return std::nullopt;
}

} // namespace

std::optional<rejection> check_sysctls(const model::pod_spec& spec, const std::vector<std::string>& allowed_unsafe) {
    if (!spec.security_context) return std::nullopt;
    for (const auto& s : spec.security_context->sysctls) {
        auto name = s.name;
        std::replace(name.begin(), name.end(), '/', '.');
        const bool safe = std::find(safe_sysctls.begin(), safe_sysctls.end(), name) != safe_sysctls.end();
        const bool allowed = std::any_of(allowed_unsafe.begin(), allowed_unsafe.end(),
                                         [&](const std::string& pattern) { return allows(pattern, name); });
        const auto forbidden = [&](const char* why) {
            return rejection{.reason = "SysctlForbidden", .message = "forbidden sysctl: \"" + s.name + "\" " + why};
        };
        if (!safe && !allowed) return forbidden("not allowlisted");
        if (scope_of(name) == sysctl_scope::net && spec.host_network) return forbidden("not allowed with host net enabled");
        if (scope_of(name) == sysctl_scope::ipc && spec.host_ipc) return forbidden("not allowed with host ipc enabled");
    }
    return std::nullopt;
}

std::optional<rejection> check_node(const model::pod_spec& spec, const admission_facts& facts) {
    if (spec.os && spec.os->name != "linux")
        return rejection{.reason = "PodOSNotSupported",
                         .message = "Failed to admit pod as the OS field doesn't match node OS"};
    if (!matches_node(spec, facts.labels, facts.node_name))
        return rejection{.reason = "NodeAffinity",
                         .message = "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"};
    if (!spec.node_name.empty() && !facts.node_name.empty() && spec.node_name != facts.node_name)
        return rejection{.reason = "NodeName",
                         .message = "Predicate NodeName failed: node(s) didn't match the requested node name"};
    return std::nullopt;
}

std::optional<rejection> admit(const model::pod& pod, const std::vector<admitted_pod>& others,
                               const admission_facts& facts) {
    if (auto no = check_sysctls(pod.spec, facts.allowed_unsafe_sysctls)) return no;
    if (auto no = check_node(pod.spec, facts)) return no;
    if (auto no = check_features(pod.spec, facts.bound)) return no;
    // Last, since what stands in the way may go: everything before is final.
    if (facts.allocatable)
        if (auto no = check_amounts(pod, others, *facts.allocatable)) return no;
    return check_ports(pod, others);
}

} // namespace gantry::core
