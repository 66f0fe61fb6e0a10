#include "plugins/cni-bridge/ports.hpp"

#include "plugins/cni-bridge/cni_error.hpp"

namespace gantry::cni_bridge {

bool clash(const port_mapping& a, const port_mapping& b) {
    if (a.protocol != b.protocol || a.host_port != b.host_port) return false;
    if (!a.host_ip || !b.host_ip) return true;
    if (a.host_ip->v6 != b.host_ip->v6) return false;
    return *a.host_ip == *b.host_ip || a.host_ip->is_unspecified() || b.host_ip->is_unspecified();
}

result<void> port_table::check(const attachment& who, const std::vector<port_mapping>& wanted,
                               const lease_table& leases) const {
    for (std::size_t i = 0; i < wanted.size(); ++i) {
        for (std::size_t j = 0; j < i; ++j)
            if (clash(wanted[i], wanted[j]))
                return cni_error(code::invalid, cni_code::invalid_config,
                                 "hostPort " + to_text(wanted[i]) + " is mapped twice by this pod");
        const auto [from, to] = held_.equal_range({wanted[i].protocol, wanted[i].host_port});
        for (auto it = from; it != to; ++it) {
            const auto& [mapping, holder] = it->second;
            if (holder == who || !clash(mapping, wanted[i])) continue;
            const auto found = leases.find(holder);
            return cni_error(code::exists, cni_code::port_taken,
                             "hostPort " + to_text(wanted[i]) + " is taken by " +
                                 (found == leases.end() ? "container " + holder.first : found->second.holder()) +
                                 (to_text(mapping) == to_text(wanted[i]) ? "" : ", which maps " + to_text(mapping)) +
                                 "; give one of them another hostPort or hostIP");
        }
    }
    return {};
}

void port_table::add(const lease& l) {
    for (const auto& port : l.ports) held_.emplace(std::pair{port.protocol, port.host_port}, std::pair{port, l.key()});
}

void port_table::remove(const lease& l) {
    for (const auto& port : l.ports) {
        const auto [from, to] = held_.equal_range({port.protocol, port.host_port});
        for (auto it = from; it != to;) it = it->second.second == l.key() ? held_.erase(it) : std::next(it);
    }
}

} // namespace gantry::cni_bridge
