// The node's bridge: the link itself, its addresses (the pods' gateways), and the kernel parameters that pods need.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plugins/cni-bridge/names.hpp"
#include "plugins/cni-bridge/settings.hpp"
#include "plugins/common/netlink/route.hpp"

namespace gantry::cni_bridge {

class bridge {
public:
    bridge(const settings& config, const owner& who) : config_(config), who_(who), name_(bridge_name(who)) {}

    /// Makes or repairs it; returns what was done, empty when all was well. Refuses a link of this name that is not
    /// ours, and a subnet that meets another link's addresses. On a thread in the host's network namespace. [blocks]
    result<std::vector<std::string>> ensure(netlink::socket& route);

    const std::string& name() const noexcept { return name_; }
    /// Of the last successful ensure().
    std::int32_t index() const noexcept { return index_; }
    std::uint32_t mtu() const noexcept { return mtu_; }
    /// Follows from the gateway, so that it is the same after the bridge was made anew.
    netlink::mac_address mac() const;

private:
    result<std::uint32_t> wanted_mtu(netlink::socket& route) const;
    result<void> check_overlap(netlink::socket& route, std::int32_t own) const;
    result<netlink::link> make(netlink::socket& route) const;
    result<void> ensure_link(netlink::socket& route, const netlink::link& found, std::vector<std::string>& done);
    result<void> ensure_addresses(netlink::socket& route, std::vector<std::string>& done) const;
    result<void> ensure_sysctls(std::vector<std::string>& done) const;

    settings config_;
    owner who_;
    std::string name_;
    std::int32_t index_ = 0;
    std::uint32_t mtu_ = 0;
};

} // namespace gantry::cni_bridge
