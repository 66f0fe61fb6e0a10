// engine: the runtime behind CRI. Holds every sandbox and container, drives their supervisors, and gives them network,
// cgroups, files.
//
// Everything runs on the lane. Operations are coroutines; what may block goes through host.work(). Operations that
// change something are not interrupted when their caller gives up: they reach their end, or undo what they did, so that
// a cancelled call leaves nothing behind.
//
// Truth, when the process starts anew and sources disagree: processes in the cgroup, then the supervisor's answer, then
// files.
#pragma once

#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "gantry/sdk/host.hpp"
#include "plugins/common/cgroup/cgroup.hpp"
#include "plugins/cri-native/images/image_store.hpp"
#include "plugins/cri-native/runtime/model.hpp"
#include "plugins/cri-native/runtime/rootfs/disk_usage.hpp"
#include "plugins/cri-native/runtime/seccomp.hpp"
#include "plugins/cri-native/runtime/settings.hpp"
#include "plugins/cri-native/runtime/spec/container.hpp"
#include "plugins/cri-native/runtime/store/record_store.hpp"
#include "proto/cri.pb.h"

namespace gantry::cri_native {

namespace cri = runtime::v1;

template <class T>
using op_task = sdk::task<result<T>>;

/// How long the kernel may take to end what got SIGKILL, and to let go of its cgroup.
inline constexpr auto kill_timeout = std::chrono::seconds(10);

/// Where supervisors live, outside of pods: they are not charged to them, and survive the node's own service.
launch::supervisor_cgroup supervisor_cgroup_of(const cgroup::layout& layout, const std::string& group);

class engine {
public:
    engine(sdk::host host, settings with);
    ~engine();

    /// Opens the stores and takes over what runs already; ready() then ends, for better or worse. Started once.
    sdk::task<void> start();
    op_task<void> ready();
    /// The image store, after ready().
    images::image_store& image_store() { return *images_; }

    // ---- CRI RuntimeService, by its names; after ready()
    // --------------------------------------------------------------
    op_task<cri::VersionResponse> version(cri::VersionRequest, sdk::op);
    op_task<cri::StatusResponse> status(cri::StatusRequest, sdk::op);
    op_task<cri::UpdateRuntimeConfigResponse> update_runtime_config(cri::UpdateRuntimeConfigRequest, sdk::op);

    op_task<cri::RunPodSandboxResponse> run_pod_sandbox(cri::RunPodSandboxRequest, sdk::op);
    op_task<cri::StopPodSandboxResponse> stop_pod_sandbox(cri::StopPodSandboxRequest, sdk::op);
    op_task<cri::RemovePodSandboxResponse> remove_pod_sandbox(cri::RemovePodSandboxRequest, sdk::op);
    op_task<cri::PodSandboxStatusResponse> pod_sandbox_status(cri::PodSandboxStatusRequest, sdk::op);
    op_task<cri::ListPodSandboxResponse> list_pod_sandbox(cri::ListPodSandboxRequest, sdk::op);

    op_task<cri::CreateContainerResponse> create_container(cri::CreateContainerRequest, sdk::op);
    op_task<cri::StartContainerResponse> start_container(cri::StartContainerRequest, sdk::op);
    op_task<cri::StopContainerResponse> stop_container(cri::StopContainerRequest, sdk::op);
    op_task<cri::RemoveContainerResponse> remove_container(cri::RemoveContainerRequest, sdk::op);
    op_task<cri::ListContainersResponse> list_containers(cri::ListContainersRequest, sdk::op);
    op_task<cri::ContainerStatusResponse> container_status(cri::ContainerStatusRequest, sdk::op);
    op_task<cri::UpdateContainerResourcesResponse> update_container_resources(cri::UpdateContainerResourcesRequest,
                                                                              sdk::op);
    op_task<cri::ReopenContainerLogResponse> reopen_container_log(cri::ReopenContainerLogRequest, sdk::op);

    op_task<cri::ExecSyncResponse> exec_sync(cri::ExecSyncRequest, sdk::op);
    op_task<cri::ContainerStatsResponse> container_stats(cri::ContainerStatsRequest, sdk::op);
    op_task<cri::ListContainerStatsResponse> list_container_stats(cri::ListContainerStatsRequest, sdk::op);

    // ---- with descriptors (abi/draft/runtime.h)
    // -----------------------------------------------------------------------
    /// Gives the exit code.
    op_task<int> exec_stream(cri::ExecRequest, std::vector<sdk::fd> fds, sdk::op);
    op_task<void> attach_stream(cri::AttachRequest, std::vector<sdk::fd> fds, sdk::op);
    op_task<void> port_forward(cri::PortForwardRequest, sdk::fd stream, sdk::op);
    /// Ends when the op is cancelled.
    op_task<void> container_events(sdk::op);

private:
    // engine.cpp: looking things up
    sandbox_ptr find_sandbox(const std::string& id) const; ///< by id or unique prefix; null if there is none
    container_ptr find_container(const std::string& id) const;
    result<container_ptr> running_container(const std::string& id) const;

    // recovery.cpp
    op_task<void> open_all();
    op_task<void> recover();
    sdk::task<void> adopt(store::record_store::entry entry);
    sdk::task<void> reconcile(sandbox_ptr pod, std::vector<launch::container_info> known);
    sdk::task<void> settle(sandbox_ptr pod, std::vector<launch::container_info> known, std::string unknown_reason);

    // supervision.cpp: what supervisors report
    launch::client::events events_for(const sandbox_ptr& pod);
    result<void> watch(const sandbox_ptr& pod);
    void on_exit(const sandbox_ptr& pod, const launch::container_info& info);
    void on_lost(const sandbox_ptr& pod, const error& why);
    sdk::task<void> clean_up_lost(sandbox_ptr pod);
    sdk::task<void> settle_lost(sandbox_ptr pod);
    void mark_exited(const container_ptr& one, const launch::container_info& info);
    /// Decides a container's end, also against what was reported of it, and remembers it.
    void mark_ended(const container_ptr& one, int exit_code, std::string reason, std::string message);
    sdk::task<void> kill_rest(container_ptr one);
    void publish(const container& one, cri::ContainerEventType type);
    void publish(const sandbox& pod, cri::ContainerEventType type);
    void send_event(cri::ContainerEventResponse event, cri::ContainerEventType type);

    // sandbox_ops.cpp
    op_task<void> set_up(sandbox_ptr pod, sdk::op op);
    op_task<void> connect_network(sandbox_ptr pod, sdk::op op);
    op_task<void> disconnect_network(sandbox_ptr pod);
    op_task<void> tear_down(sandbox_ptr pod); ///< containers, network, supervisor; may be repeated
    op_task<void> erase(sandbox_ptr pod);     ///< after tear_down: files, cgroups, records

    // container_ops.cpp
    op_task<void> build(container_ptr one, sandbox_ptr pod,
                        const images::image& image); ///< image: the caller's, which waits
    op_task<void> kill(container_ptr one);           ///< SIGKILL to all its processes, and their end; may be repeated
    op_task<void> destroy(container_ptr one);        ///< kill, then free everything; may be repeated

    // prepare.cpp
    result<launch::container_plan> prepare(container& one, const sandbox& pod,
                                           const images::image& image); ///< [worker]
    launch::cgroup_plan cgroup_plan_of(const std::string& group, bool privileged) const;
    container_facts facts_of(const container& one, const sandbox& pod) const;
    std::string writable_dir(const std::string& container) const { return containers_dir_ + "/" + container; }

    // exec_ops.cpp, port_forward.cpp, stats_ops.cpp
    result<launch::exec_plan> exec_plan_of(const container& one, std::vector<std::string> command,
                                           bool tty); ///< [worker]
    op_task<std::vector<cri::ContainerStats>> measure(std::vector<container_ptr> which);

    sdk::host host_;
    settings settings_;
    store::record_store records_;
    std::string containers_dir_;
    std::string supervisors_group_;
    launch::supervisor_cgroup supervisor_cgroup_;
    std::optional<cgroup::hierarchy> cgroups_;
    std::optional<launch::supervisor_image> supervisor_image_;
    std::unique_ptr<images::image_store> images_;
    std::unique_ptr<seccomp_cache> seccomp_;
    std::uint64_t available_capabilities_ = 0;
    int lowest_oom_score_ = -1000;
    std::size_t stack_limit_ = 0;

    bool started_ = false;
    result<void> start_outcome_;
    lane_event start_done_;

    disk_usage_cache layer_usage_;
    std::unordered_map<std::string, sandbox_ptr> sandboxes_;
    std::unordered_map<std::string, container_ptr> containers_;
    std::set<std::string> reserved_; ///< names of sandboxes that are being made

    struct event_reader {
        std::deque<std::string> queue; ///< serialised ContainerEventResponse, oldest first
        std::unique_ptr<lane_event> more = std::make_unique<lane_event>();
        bool ended = false;
    };
    std::set<std::shared_ptr<event_reader>> event_readers_;
};

} // namespace gantry::cri_native
