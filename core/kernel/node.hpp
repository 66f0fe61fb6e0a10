// node: the kernel. Owns pod manager, SyncLoop, one worker per pod, status manager, events and image managers, and acts
// through bound plugin instances only.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>

#include "core/host/call.hpp"
#include "core/kernel/topic.hpp"
#include "core/kernel/views.hpp"
#include "core/pod/backoff.hpp"

namespace gantry::core {

struct node_options {
    std::string name;                          ///< node.name
    std::string instance = "main";             ///< node.instance
    std::string state_dir;                     ///< pods/UID/ of this node lie below it; made when missing
    std::string log_dir;                       ///< container logs: NS_POD_UID/CONTAINER/N.log below it
    std::string resolv_conf = "/etc/resolv.conf"; ///< for dnsPolicy Default; empty: none
    std::string hosts_file = "/etc/hosts";     ///< copied for hostNetwork pods
    std::string seccomp_dir;                   ///< of localhostProfile; empty: STATE_DIR/seccomp
    std::string host_ip;                       ///< of this node, for status.hostIP; may be empty
    std::vector<std::string> cluster_dns;      ///< nameservers of dnsPolicy ClusterFirst
    std::string cluster_domain;                ///< "cluster.local", or empty
    std::vector<std::string> allowed_unsafe_sysctls; ///< names, or prefixes that end in *
    std::map<std::string, std::string> labels; ///< of the Node, for nodeSelector
    std::int64_t max_pods = 110;
    std::int64_t pod_pids_limit = -1;          ///< -1: unlimited
    std::chrono::milliseconds audit_period{60'000};
    backoff_policy restart_backoff{};
    backoff_policy pull_backoff{};
};

/// A runtime with its image service. handler is a key of bind.runtime.handlers, empty for the default one; several
/// handlers may name the same instance.
struct runtime_binding {
    std::string handler;
    plugin_client* runtime = nullptr;
    plugin_client* image = nullptr;
};

/// What is bound on this node. The clients outlive the node.
struct node_clients {
    std::vector<runtime_binding> runtimes;
    plugin_client* resources = nullptr;
    std::vector<plugin_client*> pod_sources; ///< in order of NodeConfig
};

/// Everything below runs on the io_context's one thread.
class node {
public:
    node(boost::asio::io_context& io, node_options options, node_clients clients);
    ~node();
    node(const node&) = delete;
    node& operator=(const node&) = delete;

    /// Reads the state that an earlier run left, then starts the loops. Fails when the directories cannot be used.
    boost::asio::awaitable<result<void>> start();
    /// Ends the loops and cancels what is open. Containers go on running; the next start adopts them.
    boost::asio::awaitable<void> stop();

    std::vector<pod_summary> pods() const;
    /// The Pod as kubectl would print it: spec with defaults and the present status. code::not_found.
    result<std::string> pod_json(std::string_view namespace_, std::string_view name) const;
    result<pod_explanation> explain(std::string_view namespace_, std::string_view name) const;
    /// uid empty: of all pods, oldest first.
    std::vector<kube_event> events(std::string_view uid = {}) const;
    /// For exec, attach and logs. container empty: the pod's only or first one. previous: the instance before.
    result<container_ref> find_container(std::string_view namespace_, std::string_view name,
                                         std::string_view container, bool previous) const;
    node_health health() const;

    /// Keyed by pod UID.
    topic<std::shared_ptr<const pod_change>>& pod_changes();
    /// Keyed by kube_event::id; as many as the node keeps.
    topic<std::shared_ptr<const kube_event>>& event_changes();

    /// Takes an Event that a plugin emitted (GANTRY_SERVICE_EVENTS.emit).
    void record_event(kube_event event);

private:
    struct impl;
    std::unique_ptr<impl> impl_;
};

} // namespace gantry::core
