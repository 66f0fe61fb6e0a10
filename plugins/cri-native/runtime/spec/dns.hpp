// The text of /etc/resolv.conf and /etc/hosts for pods.
#pragma once

#include <string>
#include <vector>

namespace gantry::cri_native {

struct dns_settings {
    std::vector<std::string> servers{};
    std::vector<std::string> searches{};
    std::vector<std::string> options{};
};

/// resolv.conf(5) for the settings: "search" first, one "nameserver" a line, "options" last. The caller has applied
/// Kubernetes' limits already; nothing is dropped here.
std::string resolv_conf(const dns_settings& dns);

/// A minimal /etc/hosts, for containers whose request mounts none.
std::string hosts_file(const std::string& hostname, const std::vector<std::string>& ips);

} // namespace gantry::cri_native
