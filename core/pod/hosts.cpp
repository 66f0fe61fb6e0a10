#include "core/pod/hosts.hpp"

namespace gantry::core {

namespace {

/// A name that the kernel and DNS take: at most 63 characters that do not end in '-' or '.'.
std::string cut(std::string name) {
    constexpr std::size_t limit = 63;
    if (name.size() <= limit) return name;
    name.resize(limit);
    while (!name.empty() && (name.back() == '-' || name.back() == '.')) name.pop_back();
    return name;
}

} // namespace

result<pod_hostname> make_hostname(const model::pod& pod, const std::string& node_hostname,
                                   const std::string& cluster_domain) {
    const auto& spec = pod.spec;
    if (spec.host_network) return pod_hostname{node_hostname, node_hostname, {}};
    if (!spec.hostname_override.empty()) {
        auto name = cut(spec.hostname_override);
        return pod_hostname{name, name, {}};
    }
    pod_hostname out;
    out.host = cut(spec.hostname.empty() ? pod.metadata.name : spec.hostname);
    out.name = out.host;
    if (!spec.subdomain.empty())
        out.domain = spec.subdomain + "." + pod.metadata.namespace_ + ".svc." + cluster_domain;
    if (spec.set_hostname_as_fqdn == true && !out.domain.empty()) {
        constexpr std::size_t kernel_limit = 64;
        out.name = out.host + "." + out.domain;
        if (out.name.size() > kernel_limit)
            return error{.code = code::invalid,
                         .message = "failed to construct FQDN from pod hostname and cluster domain, FQDN " + out.name +
                                    " is too long (" + std::to_string(kernel_limit) + " characters is the max, " +
                                    std::to_string(out.name.size()) + " characters requested)"};
    }
    return out;
}

std::string make_hosts(const model::pod_spec& spec, const pod_hostname& hostname, const std::vector<std::string>& pod_ips,
                       std::string_view node_hosts) {
    std::string out;
    if (spec.host_network) {
        out = "# Kubernetes-managed hosts file (host network).\n";
        out += node_hosts;
    } else {
        out = "# Kubernetes-managed hosts file.\n"
              "127.0.0.1\tlocalhost\n"
              "::1\tlocalhost ip6-localhost ip6-loopback\n"
              "fe00::0\tip6-localnet\n"
              "fe00::0\tip6-mcastprefix\n"
              "fe00::1\tip6-allnodes\n"
              "fe00::2\tip6-allrouters\n";
        const auto names = hostname.domain.empty() ? hostname.host
                                                   : hostname.host + "." + hostname.domain + "\t" + hostname.host;
        for (const auto& ip : pod_ips) out += ip + "\t" + names + "\n";
    }
    if (spec.host_aliases.empty()) return out;
    out += "\n# Entries added by HostAliases.\n";
    for (const auto& alias : spec.host_aliases) {
        out += alias.ip;
        for (const auto& name : alias.hostnames) out += "\t" + name;
        out += "\n";
    }
    return out;
}

} // namespace gantry::core
