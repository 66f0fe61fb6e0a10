// Host name of a pod, and its /etc/hosts.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "gantry/model/pod.hpp"
#include "gantry/sdk/result.hpp"

namespace gantry::core {

struct pod_hostname {
    std::string name;   ///< what the pod's kernel says
    std::string host;   ///< in /etc/hosts
    std::string domain; ///< in /etc/hosts, or empty
};

/// node_hostname: of this machine, for hostNetwork pods. cluster_domain: may be empty. Fails when setHostnameAsFQDN asks
/// for more than 64 characters.
result<pod_hostname> make_hostname(const model::pod& pod, const std::string& node_hostname,
                                   const std::string& cluster_domain);

/// node_hosts: the machine's own file, for hostNetwork pods.
std::string make_hosts(const model::pod_spec& spec, const pod_hostname& hostname, const std::vector<std::string>& pod_ips,
                       std::string_view node_hosts);

} // namespace gantry::core
