// One plugin instance: its lane, its operations, its host services, and its life from the library to destroy().
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/config/node_config.hpp"
#include "core/host/catching.hpp"
#include "core/host/config_check.hpp"
#include "core/host/crash_log.hpp"
#include "core/host/current_call.hpp"
#include "core/host/event_link.hpp"
#include "core/host/executor.hpp"
#include "core/host/helpers.hpp"
#include "core/host/hygiene.hpp"
#include "core/host/lane.hpp"
#include "core/host/op_router.hpp"
#include "core/host/plugin_metrics.hpp"
#include "core/host/plugin_state.hpp"
#include "core/host/services.hpp"
#include "core/host/state_store.hpp"
#include "core/log/log.hpp"
#include "core/log/repeat_gate.hpp"

namespace gantry::core {

class instance;

/// What all instances of a node share. Outlives them.
struct node_context {
    node_settings node{};
    boost::asio::io_context* loop = nullptr;
    alarm_clock* alarms = nullptr;
    op_journal* journal = nullptr;
    crash_log* crashes = nullptr;
    helper_groups* groups = nullptr; ///< null without cgroups
    std::string library_dir{};
    std::shared_ptr<const event_port> events{};
    /// The instance bound for a capability id as seen by `caller`; null if there is none. [any]
    std::function<instance*(const instance& caller, std::string_view capability)> peer{};
};

class instance {
public:
    using clock = std::chrono::steady_clock;

    /// library: the verified copy that is to be loaded; empty for a built-in plugin.
    static result<std::unique_ptr<instance>> make(const node_context& node, plugin_settings settings, chosen_plugin chosen,
                                                  std::string library, std::uint32_t index);
    ~instance();
    /// Ends lane and workers; false when a thread still runs plugin code, which may use this object at any time: leave it
    /// be, then. The alarms have been stopped before.
    bool end(clock::time_point deadline);

    // [lane] Each is posted to the lane by the host.
    /// Takes a file that was replaced since it was verified, if the new one offers and requires the same and is not pinned
    /// out; for instances whose code was never loaded.
    result<void> refresh_file();
    result<void> load_and_init();
    result<void> activate();
    void drain(clock::time_point deadline);
    void stop(clock::time_point deadline);

    /// Called at short intervals by the watchdog: marks the instance as hung, or as back. [alarm thread]
    void watch(clock::time_point now);
    /// Runs once when the lane is found hung, instead of what it was asked to do; replaces an earlier one. [any]
    void on_hang(std::function<void()> fn);

    const std::string& name() const noexcept { return settings_.name; }
    const plugin_settings& settings() const noexcept { return settings_; }
    const chosen_plugin& chosen() const noexcept { return chosen_; }
    std::string sha256() const;
    std::string version() const;
    const std::string& origin() const noexcept { return origin_; }
    core::lane& lane() noexcept { return *lane_; }
    op_router& ops() noexcept { return *ops_; }
    const op_router& ops() const noexcept { return *ops_; }
    executor& workers() noexcept { return *workers_; }
    core::helpers& helper_processes() noexcept { return *helpers_; }
    event_link& events() noexcept { return *events_; }
    state_store& store() noexcept { return store_; }
    plugin_metrics& metrics() noexcept { return metrics_; }
    const plugin_metrics& metrics() const noexcept { return metrics_; }
    log::channel& log() noexcept { return log_; }
    const log::channel& log() const noexcept { return log_; }
    const node_context& node() const noexcept { return node_; }
    const char* interned_name() const noexcept { return interned_name_; }

    plugin_state state() const;
    std::string reason() const;
    /// Sets state and reason, and closes the instance for ops unless it is active. [any]
    void set_state(plugin_state state, std::string reason = {});
    /// `flags` word of a capability's table; 0 until it is known. [any]
    std::uint32_t flags(std::string_view capability) const;

    /// Counts a fault of the plugin and logs it, repeated ones with growing pauses. [any]
    void misbehaved(const char* kind, const std::string& what);
    std::map<std::string, std::uint64_t> faults() const;

    /// Runs plugin code on the lane with attribution, then looks at what it left behind. Returns what it threw, if it did,
    /// which is counted as misbehaviour. [lane]
    template <class F>
    std::optional<std::string> enter(const char* what, std::uint64_t op, const F& code) {
        std::optional<std::string> thrown;
        {
            const call_scope scope(interned_name_, what, op);
            lane_->set_label(what);
            thrown = catching(code);
        }
        if (thrown) report_exception(what, *thrown);
        after_call(what);
        return thrown;
    }
    /// Queues plugin code to the lane; it is dropped if the plugin is stopped before its turn comes. [any]
    void post(const char* what, std::uint64_t op, std::function<void()> code);
    /// Runs plugin code on a worker thread. [worker]
    void enter_worker(std::uint64_t op, const std::function<void()>& code);

private:
    instance(const node_context& node, plugin_settings settings, chosen_plugin chosen, std::string library);
    result<void> open(std::uint32_t index);
    result<gantry_plugin_main_fn> library();
    result<void> create_and_init(const gantry_plugin_entry& entry);
    result<void> take_tables();
    bool revoke_services(clock::time_point deadline);
    void destroy();
    void after_call(const char* what);
    void report(const std::vector<hygiene_fault>& faults, const char* what);
    void report_exception(const char* what, const std::string& thrown);
    result<void> enter_checked(const char* what, const std::function<gantry_status(gantry_error_sink*)>& code);
    bool has(std::size_t offset) const;

    const node_context& node_;
    const plugin_settings settings_;
    const chosen_plugin chosen_;
    std::string sha256_, version_; ///< guarded by mutex_: refresh_file() changes them
    const std::string origin_;
    const char* const interned_name_;
    const int concurrency_;
    log::channel log_;
    state_store store_;
    plugin_metrics metrics_;
    std::unique_ptr<core::lane> lane_;
    std::unique_ptr<op_router> ops_;
    std::unique_ptr<executor> workers_;
    std::unique_ptr<core::helpers> helpers_;
    std::shared_ptr<event_link> events_;
    std::unique_ptr<host_services> services_;

    std::atomic<std::uint64_t> life_{0}; ///< grows with each stop: what was queued before it is void

    // Of the lane.
    bool initialised_ = false;
    std::string library_;
    descriptor expected_;   ///< what the library's own descriptor must say
    std::uint32_t plugin_index_;
    std::unique_ptr<hygiene_check> hygiene_;
    unsigned forks_seen_ = 0;
    gantry_plugin_main_fn main_ = nullptr;
    const gantry_plugin* plugin_ = nullptr;

    mutable std::mutex mutex_;
    plugin_state state_ = plugin_state::loaded;
    plugin_state state_before_hang_ = plugin_state::loaded;
    std::string reason_;
    std::function<void()> on_hang_;
    std::map<std::string, const void*, std::less<>> tables_;
    void* self_ = nullptr;
    std::map<std::string, std::uint64_t> faults_;
    log::repeat_gate fault_gate_;
};

} // namespace gantry::core
