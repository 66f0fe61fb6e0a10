// One pod: brings what runs to what the spec says, one step after the other.
//
// A worker passes through the stages sync -> terminating -> terminated -> finished and never goes back. The newest spec
// wins; entering terminating, or a shorter grace period, cancels the step that runs.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/cancellation_signal.hpp>

#include "core/admission/admission.hpp"
#include "core/images/image_manager.hpp"
#include "core/kernel/cri_client.hpp"
#include "core/kernel/file_worker.hpp"
#include "core/kernel/node.hpp"
#include "core/kernel/pod_record.hpp"
#include "core/kernel/runtime_slot.hpp"
#include "core/kernel/signal.hpp"
#include "core/kernel/status_manager.hpp"
#include "core/pod/actions.hpp"
#include "core/pod/status.hpp"

namespace gantry::core {

/// What all workers share. Outlives them.
struct worker_context {
    boost::asio::any_io_executor executor;
    const node_options& options;
    file_worker& files;
    event_recorder& events;
    image_manager& images;
    status_manager& statuses;
    plugin_client* resources = nullptr;
    std::string hostname{};
    machine_facts machine{};
    model::resource_list allocatable{};
    /// Null for a handler that is not bound.
    std::function<std::shared_ptr<runtime_slot>(const std::string& handler)> runtime_for{};
    std::function<std::optional<rejection>(const model::pod& pod)> admit{};
    std::function<void(const std::string& uid)> finished{};
};

class pod_worker {
public:
    enum class stage : std::uint8_t { sync, terminating, terminated, finished };

    pod_worker(worker_context& context, std::string uid);

    /// Before run(): what the runtime has of this pod, and what an earlier worker wrote down.
    void adopt(std::shared_ptr<runtime_slot> slot, runtime_view view);
    void load(pod_record record);

    /// The spec to follow from now on.
    void update(std::shared_ptr<const model::pod> pod);
    /// The pod is no longer wanted. Without a spec (an orphan) the grace period is the shortest.
    void remove();
    void report(const runtime_event& event);
    /// What a listing has of this pod.
    void observed(const runtime_view& view);
    /// Containers and sandboxes that a listing no longer has.
    void vanished(const std::vector<std::string>& ids);
    void wake() { wake_.notify(); }

    /// Ends when the pod is finished, or after stop().
    boost::asio::awaitable<void> run();
    /// Leaves the pod as it is.
    void stop();

    const std::string& uid() const { return uid_; }
    const std::shared_ptr<const model::pod>& pod() const { return pod_; }
    const std::shared_ptr<runtime_slot>& slot() const { return slot_; }
    const runtime_view& view() const { return view_; }
    stage current() const { return stage_; }
    bool removed() const { return removed_; }
    bool ending() const { return stage_ == stage::terminating || (removed_ && stage_ != stage::finished); }
    /// It holds amounts and ports of the node.
    bool holds() const { return admitted_ && stage_ != stage::terminated && stage_ != stage::finished; }
    const std::string& waiting_for() const { return waiting_for_; }
    wall_time retry_at() const { return retry_at_; }
    std::string log_path(const container_view& c) const;

private:
    using steady = std::chrono::steady_clock;
    using awaitable_bool = boost::asio::awaitable<bool>;
    using task = boost::asio::awaitable<void>;

    // pod_worker.cpp
    task pass();
    task sync();
    task forget();
    void begin_ending();
    void publish();
    void say(bool warning, const char* reason, std::string message, std::string field_path = {});
    void save();
    pod_ref ref() const;
    pod_stage status_stage() const;
    void retry_in(steady::duration delay, std::string why);
    void retry_after_error(const error& e, std::string why);
    void retry_at(wall_time when, std::string why);
    /// The step that runs was overtaken: its outcome does not matter any more.
    bool interrupted() const { return stage_ != stage::sync || stopping_; }
    void waiting(std::string why) { waiting_for_ = std::move(why); }
    bool pass_deadline();

    // pod_worker_start.cpp
    task converge();
    awaitable_bool prepare();
    awaitable_bool ensure_cgroup();
    awaitable_bool create_sandbox(std::uint32_t attempt);
    awaitable_bool start(const pod_actions::start& what);
    awaitable_bool launch(const model::container& c, const std::string& field_path, const image_facts& image,
                          std::uint32_t attempt);
    awaitable_bool start_created(const model::container& c, const std::string& field_path, const std::string& id);
    wall_time exit_time(const container_view& c) const;
    bool in_backoff(const model::container& c, const std::string& field_path);
    void block(const std::string& container, const char* reason, const std::string& message, steady::duration delay);
    task prune();

    // pod_worker_stop.cpp
    task terminate();
    awaitable_bool refresh();
    awaitable_bool refresh_container(const std::string& id, const std::string& sandbox_id);
    awaitable_bool stop_all();
    task read_messages();
    boost::asio::awaitable<result<void>> remove_cgroup();
    task stop_container_task(std::string id, std::string name, std::string message, steady::time_point deadline);
    std::chrono::seconds grace() const;
    std::string field_path(const std::string& container) const;

    worker_context& context_;
    std::string uid_;
    std::shared_ptr<const model::pod> pod_; ///< null: an orphan of the runtime
    std::shared_ptr<runtime_slot> slot_;
    runtime_view view_;
    stage stage_ = stage::sync;
    bool removed_ = false;
    bool stopping_ = false;
    bool admitted_ = false;
    bool in_cgroup_ = false;   ///< the pod's cgroup was made by this worker
    bool uncertain_ = false;   ///< a call ended in a way that leaves open what it did: list before going on
    bool initialized_ = true;  ///< when it began to end
    signal wake_;
    boost::asio::cancellation_signal step_stop_;
    steady::time_point next_{};
    steady::duration error_delay_{};
    std::optional<steady::time_point> stop_deadline_;
    std::optional<error> stop_error_;
    sandbox_facts sandbox_facts_;
    pod_hostname hostname_;
    std::string node_hosts_;
    waiting_reasons waiting_;
    std::map<std::string, steady::time_point> not_before_; ///< of the next try to start a container
    std::map<std::string, pull_history> pulls_;
    std::set<std::string> messages_read_; ///< ids of containers
    pod_record record_;
    std::string forced_reason_; ///< of a pod that the node ended: DeadlineExceeded
    std::string forced_message_;
    std::string waiting_for_;
    wall_time due_{};      ///< of the next try, as far as this pass has come
    wall_time retry_at_{}; ///< what is shown
};

} // namespace gantry::core
