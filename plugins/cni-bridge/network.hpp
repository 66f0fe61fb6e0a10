// The network of one node: the verbs of CNI 1.1 over the bridge, the leases and the nftables table.
//
// Order of an ADD: lease on disk, links, map elements. Order of a DEL: map elements, links, lease. So whatever a crash
// leaves is found again by its lease; a replay of either verb completes it.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "plugins/cni-bridge/address_pool.hpp"
#include "plugins/cni-bridge/bridge.hpp"
#include "plugins/cni-bridge/lease_store.hpp"
#include "plugins/cni-bridge/nat.hpp"
#include "plugins/cni-bridge/ports.hpp"
#include "plugins/cni-bridge/wire.hpp"
#include "plugins/common/netlink/socket.hpp"

namespace gantry::cni_bridge {

struct add_request {
    std::string container_id;
    std::string ifname;
    std::string pod{}; ///< "namespace/name" for messages, may be empty
    int netns = -1;    ///< borrowed
    std::vector<port_mapping> ports{};
    std::vector<netlink::ip_address> wanted_addresses{}; ///< empty: any
};

struct attached {
    lease held;
    wire links;
    std::uint32_t mtu = 0;
};

/// Called after each step of an ADD or DEL with the step's name.
using step_fn = std::function<void(std::string_view)>;

/// One thread, in the host's network namespace; every function blocks for the kernel's time only.
class network {
public:
    struct environment {
        owner who;
        std::string state_dir;
        std::uint64_t seed = 0;                    ///< where allocation starts
        std::function<void(std::string_view)> log; ///< what was repaired, one line each
    };
    network(settings config, environment env);

    /// Opens sockets, reads the leases, makes or repairs bridge and table. The verbs may be called whatever came out of
    /// it: those that need what failed try again.
    result<void> start();

    result<attached> add(const add_request& request, const step_fn& step);
    /// Success when nothing is left. Needs no namespace.
    result<void> del(const attachment& who, const step_fn& step);
    result<void> check(const attachment& who, int netns);
    result<void> status();
    /// Frees what belongs to no valid attachment: leases, links, map elements.
    result<void> gc(const std::set<attachment>& valid);

    /// Compares bridge and table with what should be and repairs them.
    result<void> audit();
    /// Deletes links that DELs have left behind; call it when idle. True when some may be left for later.
    bool has_doomed() const noexcept { return doomed_; }
    result<void> delete_doomed();

    /// Readable when somebody changed nftables; then call table_was_touched().
    int watch_fd() const noexcept { return watch_ ? watch_->fd() : -1; }
    /// Reads the notifications; true when one by somebody else was about our table, so that an audit is due.
    bool table_was_touched();

    const bridge& link() const noexcept { return bridge_; }
    const lease_table& leases() const noexcept { return leases_; }
    const settings& config() const noexcept { return config_; }

private:
    result<void> open();
    result<void> load_leases();
    result<void> ensure_base();
    result<lease> new_lease(const add_request& request);
    result<std::vector<netlink::ip_address>> allocate(const add_request& request);
    result<void> attach(const lease& l, const add_request& request, const step_fn& step);
    void forget(const lease& l);
    result<void> release(const lease& l, const step_fn& step);
    address_pool* pool_for(const netlink::ip_address& address);
    void log(std::string_view line) const {
        if (env_.log) env_.log(line);
    }

    settings config_;
    environment env_;
    bridge bridge_;
    nat nat_;
    lease_store store_;
    lease_table leases_;
    port_table ports_;
    std::optional<address_pool> pool4_;
    std::optional<address_pool> pool6_;
    std::optional<netlink::netns_visitor> thread_;
    std::optional<netlink::socket> route_;
    std::optional<netlink::socket> netfilter_;
    std::optional<netlink::socket> watch_;
    bool loaded_ = false;
    bool base_ok_ = false;
    bool doomed_ = false;
};

} // namespace gantry::cni_bridge
