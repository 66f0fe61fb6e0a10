// A lease: what one attachment (containerID, ifname) holds. Written before anything is made in the kernel, removed
// after everything is gone from it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plugins/common/netlink/ip.hpp"

namespace gantry::cni_bridge {

struct port_mapping {
    std::uint8_t protocol = 0;                    ///< IPPROTO_TCP, _UDP, _SCTP
    std::optional<netlink::ip_address> host_ip{}; ///< nothing: every address of the host, both families
    std::uint16_t host_port = 0;
    std::uint16_t container_port = 0;
    auto operator<=>(const port_mapping&) const = default;
};

/// "tcp", "udp", "sctp"
std::string_view protocol_name(std::uint8_t protocol);
std::optional<std::uint8_t> protocol_number(std::string_view name);
/// "tcp 10.0.0.1:8080"
std::string to_text(const port_mapping& mapping);

/// (containerID, ifname)
using attachment = std::pair<std::string, std::string>;

struct lease {
    std::string container_id;
    std::string ifname;
    std::string pod{}; ///< "namespace/name" for people, may be empty
    std::vector<netlink::ip_address> addresses{};
    std::vector<port_mapping> ports{};
    std::string sandbox{}; ///< the namespace as the first ADD saw it, for its result

    attachment key() const { return {container_id, ifname}; }
    /// "pod default/web (container 0123abc)"
    std::string holder() const;
};

using lease_table = std::map<attachment, lease>;

} // namespace gantry::cni_bridge
