// Which attachment holds which port of the host. Decisions only, no I/O.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "plugins/cni-bridge/lease.hpp"

namespace gantry::cni_bridge {

/// Two mappings clash when protocol and port are equal and their host addresses meet: equal, or one is "every address"
/// (nothing, 0.0.0.0 or ::, the latter two of their family only), as the Kubernetes scheduler counts it.
bool clash(const port_mapping& a, const port_mapping& b);

class port_table {
public:
    /// An error that names the holder of the first port that is taken; ports of `who` itself do not clash, two of the
    /// same request do.
    result<void> check(const attachment& who, const std::vector<port_mapping>& wanted, const lease_table& leases) const;
    void add(const lease& l);
    void remove(const lease& l);

private:
    std::multimap<std::pair<std::uint8_t, std::uint16_t>, std::pair<port_mapping, attachment>> held_;
};

} // namespace gantry::cni_bridge
