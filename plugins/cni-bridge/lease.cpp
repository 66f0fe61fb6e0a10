#include "plugins/cni-bridge/lease.hpp"

#include <netinet/in.h>

namespace gantry::cni_bridge {

std::string_view protocol_name(std::uint8_t protocol) {
    return protocol == IPPROTO_TCP ? "tcp" : protocol == IPPROTO_UDP ? "udp" : "sctp";
}

std::optional<std::uint8_t> protocol_number(std::string_view name) {
    if (name == "tcp") return static_cast<std::uint8_t>(IPPROTO_TCP);
    if (name == "udp") return static_cast<std::uint8_t>(IPPROTO_UDP);
    if (name == "sctp") return static_cast<std::uint8_t>(IPPROTO_SCTP);
    return std::nullopt;
}

std::string to_text(const port_mapping& mapping) {
    std::string text(protocol_name(mapping.protocol));
    text += " ";
    if (mapping.host_ip)
        text += (mapping.host_ip->v6 ? "[" + mapping.host_ip->text() + "]" : mapping.host_ip->text()) + ":";
    return text + std::to_string(mapping.host_port);
}

std::string lease::holder() const {
    const std::string container = "container " + container_id.substr(0, 12);
    return pod.empty() ? container : "pod " + pod + " (" + container + ")";
}

} // namespace gantry::cni_bridge
