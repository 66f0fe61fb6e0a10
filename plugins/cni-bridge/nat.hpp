// Masquerading and host ports: one nftables table per node instance, all accept policy, no rule per pod. A host port is
// one map element per family, (protocol . port) or (host address . protocol . port) -> (pod address . port).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "plugins/cni-bridge/lease.hpp"
#include "plugins/cni-bridge/names.hpp"
#include "plugins/cni-bridge/settings.hpp"
#include "plugins/common/netlink/nft.hpp"

namespace gantry::cni_bridge {

/// What the table is made of, as the kernel lists it.
struct nat_skeleton {
    std::vector<netlink::nft::listed_chain> chains{};
    std::vector<netlink::nft::listed_rule> rules{};
    std::vector<std::string> sets{};
};

/// Set name -> its elements, sorted.
using nat_elements = std::map<std::string, std::vector<netlink::nft::element>>;

/// The elements that one lease's host ports need; none without host ports.
nat_elements elements_of(const lease& l);
nat_elements elements_of(const lease_table& leases);

/// One thread. Every change is one transaction: all of it or nothing.
class nat {
public:
    nat(const settings& config, const owner& who);

    result<void> add(netlink::socket& netfilter, const lease& l) const;
    /// Elements that are gone already are no error.
    result<void> remove(netlink::socket& netfilter, const lease& l) const;
    /// An error that names the first element of the lease that the kernel lacks or holds otherwise.
    result<void> check(netlink::socket& netfilter, const lease& l) const;

    /// Compares the kernel's table with what should be there and repairs it: a wrong skeleton by replacing the table as
    /// a whole, wrong elements one by one. Returns what was wrong; empty when nothing was.
    result<std::vector<std::string>> audit(netlink::socket& netfilter, const lease_table& leases) const;

    const std::string& table() const noexcept { return table_; }

private:
    nat_skeleton build(netlink::batch& b) const;
    void build_ports(netlink::batch& b, nat_skeleton& made) const;
    void build_masquerade(netlink::batch& b, nat_skeleton& made) const;
    void build_guards(netlink::batch& b, nat_skeleton& made) const;
    result<std::string> skeleton_fault(netlink::socket& netfilter) const;
    result<void> replace(netlink::socket& netfilter, const lease_table& leases) const;

    settings config_;
    std::string table_;
    std::string bridge_;
};

} // namespace gantry::cni_bridge
