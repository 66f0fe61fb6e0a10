// resolv.conf of a pod.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "gantry/model/pod.hpp"

namespace gantry::core {

struct dns_config {
    std::vector<std::string> servers;
    std::vector<std::string> searches;
    std::vector<std::string> options;

    friend bool operator==(const dns_config&, const dns_config&) = default;
};

/// Of a resolv.conf. A later `search` or `options` line replaces an earlier one.
dns_config parse_resolv_conf(std::string_view text);

/// True when every server is on the node's own loopback, where no pod can reach it: a local stub resolver.
bool only_loopback(const dns_config& config);

struct dns_facts {
    dns_config node;
    std::vector<std::string> cluster_servers; ///< empty: ClusterFirst falls back to the node's configuration
    std::string cluster_domain;
};

struct pod_dns {
    dns_config config;
    bool missing_cluster_dns = false; ///< ClusterFirst was asked for and is not there
    std::string cut;                  ///< why something was left out (event DNSConfigForming), or empty
};

pod_dns make_dns(const model::pod& pod, const dns_facts& facts);

} // namespace gantry::core
