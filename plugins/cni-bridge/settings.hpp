// The plugin's configuration, checked and with everything derived that follows from it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plugins/cni-bridge/names.hpp"
#include "plugins/common/netlink/ip.hpp"

namespace gantry::cni_bridge {

/// One family: where pods' addresses come from.
struct family_settings {
    netlink::ip_network subnet;  ///< of its base address
    netlink::ip_address gateway; ///< the bridge's own
    netlink::ip_address first;   ///< of the range for pods
    netlink::ip_address last;
};

struct settings {
    std::optional<family_settings> v4;
    std::optional<family_settings> v6;
    std::uint32_t mtu = 0; ///< 0: that of the link to the default route
    bool masquerade = true;
    std::vector<netlink::ip_network> not_masqueraded; ///< destinations that see pods' own addresses
    bool isolate = false;

    /// The families that are on, IPv4 first.
    std::vector<const family_settings*> families() const;
};

/// config: the JSON that the schema in plugin.cpp has already checked for types. Errors name the key and its value.
result<settings> parse_settings(std::string_view config);

} // namespace gantry::cni_bridge
