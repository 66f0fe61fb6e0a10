// The two ends of one attachment: a veth pair between the bridge and the pod, and what is set inside the pod.
//
// A pod's address is a /32 (/128) and its only neighbour is the gateway: pods reach each other through this host's IP
// layer, not through the bridge. So connection tracking sees both directions, and Services and host ports work between
// pods of one node whether or not br_netfilter is there.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plugins/cni-bridge/bridge.hpp"
#include "plugins/cni-bridge/lease.hpp"
#include "plugins/cni-bridge/names.hpp"
#include "plugins/cni-bridge/settings.hpp"
#include "plugins/common/netlink/route.hpp"

namespace gantry::cni_bridge {

struct pod_address {
    netlink::ip_network address; ///< /32 or /128
    netlink::ip_address gateway;
};

/// Everything about one attachment's links; follows from its lease.
struct wire {
    std::string host_name;
    std::string alias;
    std::string doomed; ///< alias and group once it waits for its removal
    std::uint32_t doomed_group = 0;
    std::string ifname;
    netlink::mac_address host_mac{};
    netlink::mac_address pod_mac{};
    std::vector<pod_address> addresses;
};

wire wire_for(const lease& l, const settings& config, const owner& who);

/// Makes it, or completes what an earlier try left. Fails with interface_taken when the pod has another link of that
/// name, and then, as after any failure, leaves nothing that was not there before. [blocks]
result<void> connect(netlink::socket& route, netlink::netns_visitor& thread, int netns, const wire& w,
                     const bridge& to);

/// An error that lists what of it is not as connect() makes it. [blocks]
result<void> check(netlink::socket& route, netlink::netns_visitor& thread, int netns, const wire& w, const bridge& to);

/// Makes the host's ends of these attachments ports of the bridge again, and up, as they are not after somebody deleted
/// the bridge. Returns what was done. Ends that do not exist are left to ADD and DEL.
result<std::vector<std::string>> reattach(netlink::socket& route, const std::vector<wire>& wires, const bridge& to);

/// Cuts the pod off at once. Deleting a veth pair waits for an RCU grace period with the kernel's network lock held
/// (16 ms); usually the namespace, and the pair with it, goes away by itself right after. True: a link is left, marked,
/// for delete_doomed() to delete later.
result<bool> disconnect(netlink::socket& route, const wire& w);

/// Deletes the marked links of this owner, however many, with one wait for RCU. [blocks]
result<void> delete_doomed(netlink::socket& route, const owner& who);

} // namespace gantry::cni_bridge
