// Connection tracking outlives rules: a UDP peer that keeps sending never asks the maps again. So flows that a change
// of host ports has made wrong are forgotten.
#pragma once

#include "plugins/cni-bridge/lease.hpp"
#include "plugins/common/netlink/socket.hpp"

namespace gantry::cni_bridge {

/// After the elements of l were added: UDP flows to its host ports that go to no pod, made while nobody held the port.
/// Flows that this host only forwards are left alone.
result<void> forget_unmapped_flows(netlink::socket& netfilter, netlink::socket& route, const lease& l);

/// After the elements of l were removed: UDP flows to its host ports that still go to its addresses.
result<void> forget_flows_to(netlink::socket& netfilter, const lease& l);

} // namespace gantry::cni_bridge
