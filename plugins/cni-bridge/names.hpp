// Names of kernel objects: derived from the node's instance, so that two nodes on one machine never meet, and from the
// attachment, so that a crash between two steps leaves nothing that cannot be found again.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "plugins/common/netlink/route.hpp"

namespace gantry::cni_bridge {

/// Whose objects these are.
struct owner {
    std::string node_instance; ///< node.instance
    std::string plugin;        ///< name of the plugin entry in NodeConfig
};

std::string bridge_name(const owner& who);
/// The host's end of an attachment's veth pair.
std::string host_link_name(const owner& who, std::string_view container_id, std::string_view ifname);
std::string table_name(const owner& who);

/// The mark of ownership on links, in their alias: on the bridge itself, and below it on each attachment's link.
std::string bridge_alias(const owner& who);
std::string link_alias(const owner& who, std::string_view container_id, std::string_view ifname);
/// Replaces link_alias() on a link that waits for its removal.
std::string doomed_alias(const owner& who);
/// The link group of those, to delete them at once. A number of 30 bits that nobody else is likely to use.
std::uint32_t doomed_group(const owner& who);
bool is_link_of(const owner& who, std::string_view alias);

/// A hardware address that follows from the IP address: whoever remembers the neighbour of an earlier pod with this
/// address still reaches the next one.
netlink::mac_address mac_for(const netlink::ip_address& address);
/// Another one, for the host's end of the same pair.
netlink::mac_address host_mac_for(const netlink::ip_address& address);
/// The IPv6 link-local address of an interface with this hardware address (RFC 4291 appendix A).
netlink::ip_network link_local_for(const netlink::mac_address& mac);

} // namespace gantry::cni_bridge
