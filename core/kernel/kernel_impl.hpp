// The parts of a node, put together.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/kernel/node.hpp"
#include "core/kernel/pod_table.hpp"
#include "core/kernel/pod_worker.hpp"
#include "core/kernel/runtime_feed.hpp"
#include "core/kernel/source_feed.hpp"
#include "core/kernel/spawn.hpp"

namespace gantry::core {

struct node::impl {
    using task = boost::asio::awaitable<void>;

    struct stray {
        std::shared_ptr<runtime_slot> slot;
        found_pod pod;
    };

    impl(boost::asio::io_context& io, node_options opts, node_clients bound);

    boost::asio::awaitable<result<void>> start();
    task stop();

    // node_boot.cpp
    boost::asio::awaitable<result<void>> read_state();
    task boot();
    task audit();
    task sweep();
    task remove_orphan_cgroups();
    task remove_orphan_records();

    // node_sync.cpp
    void source_changed(const std::string& uid);
    void settle(const std::string& key);
    void start_worker(const std::string& uid, std::shared_ptr<const model::pod> pod);
    void start_orphan(const std::string& uid, stray found);
    void run_worker(std::shared_ptr<pod_worker> worker);
    void worker_finished(const std::string& uid);
    void listed(const std::shared_ptr<runtime_slot>& slot, found_pods found, const std::vector<std::string>& vanished);
    void runtime_changed(const runtime_event& event);
    bool all_ready() const;
    std::optional<rejection> admit_pod(const model::pod& pod) const;
    std::map<std::string, const runtime_view*> known(const runtime_slot& slot) const;

    // node_views.cpp
    std::shared_ptr<pod_worker> find(std::string_view namespace_, std::string_view name) const;
    pod_summary summary_of(const pod_worker& worker) const;

    boost::asio::any_io_executor executor;
    node_options options;
    node_clients clients;
    file_worker files;
    topic<std::shared_ptr<const kube_event>> event_topic;
    event_recorder events;
    image_manager images;
    status_manager statuses;
    worker_context context;
    admission_facts admission;
    std::map<std::string, std::shared_ptr<runtime_slot>> slots; ///< by handler
    std::vector<std::unique_ptr<runtime_feed>> runtimes;
    std::vector<std::unique_ptr<source_feed>> sources;
    pod_table table;
    std::map<std::string, std::shared_ptr<pod_worker>> workers; ///< by UID
    std::map<std::string, std::string> names;                   ///< "namespace/name" -> UID of the worker that holds it
    std::set<std::string> losers;                               ///< UIDs whose duplicate name was reported
    std::map<std::string, stray> strays;                        ///< by UID: in a runtime, but nobody's
    std::map<std::string, pod_record> records;                  ///< of an earlier run, until a worker takes them
    task_group loops;
    task_group pods;
    bool stopping = false;
    bool swept = false; ///< orphans were looked for once since everything is known
    std::chrono::steady_clock::time_point audit_due{};
};

} // namespace gantry::core
