#include "plugins/cni-bridge/flows.hpp"

#include <netinet/in.h>

#include <algorithm>
#include <set>

#include "plugins/common/netlink/conntrack.hpp"
#include "plugins/common/netlink/route.hpp"

namespace gantry::cni_bridge {

namespace {

/// Forgets the doomed flows to each UDP host port, in each family that the pod has an address of.
template <class Doomed>
result<void> forget(netlink::socket& netfilter, const lease& l, Doomed doomed) {
    std::set<std::pair<std::uint16_t, bool>> done;
    for (const auto& port : l.ports) {
        if (port.protocol != IPPROTO_UDP) continue;
        for (const auto& address : l.addresses) {
            if (!done.emplace(port.host_port, address.v6).second) continue;
            const auto outcome = netlink::forget_flows(netfilter, address.v6, IPPROTO_UDP, port.host_port, doomed);
            if (!outcome) return outcome.error();
        }
    }
    return {};
}

bool has_udp(const lease& l) {
    return std::any_of(l.ports.begin(), l.ports.end(), [](const auto& port) { return port.protocol == IPPROTO_UDP; });
}

} // namespace

result<void> forget_unmapped_flows(netlink::socket& netfilter, netlink::socket& route, const lease& l) {
    if (!has_udp(l)) return {};
    GANTRY_TRY(const auto addresses, netlink::list_addresses(route));
    std::set<netlink::ip_address> local;
    for (const auto& one : addresses) local.insert(one.network.address);
    return forget(netfilter, l, [&](const netlink::flow& f) {
        const bool translated = f.answering != f.destination || f.answering_port != f.port;
        return !translated && (f.destination.is_loopback() || local.contains(f.destination));
    });
}

result<void> forget_flows_to(netlink::socket& netfilter, const lease& l) {
    if (!has_udp(l)) return {};
    return forget(netfilter, l, [&](const netlink::flow& f) {
        return std::find(l.addresses.begin(), l.addresses.end(), f.answering) != l.addresses.end();
    });
}

} // namespace gantry::cni_bridge
