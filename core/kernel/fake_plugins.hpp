// Plugins for tests of the kernel: they answer over the same coroutine interface as bound instances, from tables in memory.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/host/call.hpp"
#include "core/kernel/signal.hpp"
#include "core/pod/names.hpp"
#include "proto/cri.pb.h"

namespace gantry::core::testing {

/// Answers each op by name. Never completes before the loop has turned once, as real instances do.
class fake_plugin : public plugin_client {
public:
    using handler = std::function<result<std::string>(const std::string& bytes)>;

    fake_plugin(boost::asio::any_io_executor executor, std::string name)
        : executor_(std::move(executor)), name_(std::move(name)) {}

    std::string_view instance() const override { return name_; }
    std::uint32_t flags() const override { return 0; }
    boost::asio::awaitable<result<op_reply>> call(op_ref op, op_request request, call_options options) override;

    /// Calls of this op so far, also those that failed.
    int count(const std::string& op) const;
    /// Ops of this name wait until they are cancelled or released.
    void hold(const std::string& op) { held_.insert(op); }
    void release(const std::string& op);
    bool holding(const std::string& op) const;
    /// The next `times` calls fail so.
    void fail(const std::string& op, error e, int times = 1) { failures_[op] = {std::move(e), times}; }

    /// The open streams of this op.
    void send(const std::string& op, const std::string& bytes);
    void end_stream(const std::string& op);
    bool streaming(const std::string& op) const;

    std::map<std::string, handler> on;
    std::set<std::string> streams;

private:
    struct open_call {
        std::string op;
        signal turn;
        std::function<void(op_reply)> on_item;
        bool done = false;
    };

    boost::asio::any_io_executor executor_;
    std::string name_;
    std::map<std::string, int> counts_;
    std::set<std::string> held_;
    std::map<std::string, std::pair<error, int>> failures_;
    std::vector<open_call*> open_;
};

/// A runtime with its images: sandboxes and containers that "run" until the test ends them.
class fake_runtime : public fake_plugin {
public:
    explicit fake_runtime(boost::asio::any_io_executor executor);

    struct container {
        runtime::v1::ContainerStatus status;
        std::string sandbox;
    };

    std::map<std::string, runtime::v1::PodSandboxStatus> sandboxes;
    std::map<std::string, container> containers;
    std::map<std::string, runtime::v1::Image> images; ///< by name
    std::vector<runtime::v1::ContainerConfig> created;
    std::vector<runtime::v1::RunPodSandboxRequest> sandbox_requests;
    std::vector<std::int64_t> stop_timeouts;
    bool send_events = true;
    bool name_only_events = false; ///< events without statuses
    std::string next_start_fails;  ///< message: the next start ends as StartError

    /// The running container of this name ends.
    void exit(const std::string& container_name, int code, const std::string& reason = {});
    const container* newest(const std::string& container_name) const;
    int running() const;

private:
    void emit(const std::string& sandbox_id, const std::string& id, runtime::v1::ContainerEventType type);
    void finish(container& c, int code, const std::string& reason);
    std::int64_t now() const;

    int last_id_ = 0;
};

} // namespace gantry::core::testing
