// The name rules of the API: each returns what is wrong in the API server's words, or an empty string.
// Link target: gantry_model.
#pragma once

#include <string>
#include <string_view>

namespace gantry::model {

/// RFC 1123 label: namespaces, containers, volumes, host names.
std::string check_dns_label(std::string_view text);
/// RFC 1123 subdomain: pod names.
std::string check_dns_subdomain(std::string_view text);
/// Label and annotation keys: [prefix/]name.
std::string check_qualified_name(std::string_view text);
std::string check_label_value(std::string_view text);
/// Names of ports (RFC 6335).
std::string check_port_name(std::string_view text);
std::string check_env_name(std::string_view text);
std::string check_sysctl_name(std::string_view text);
std::string check_ip(std::string_view text);

} // namespace gantry::model
