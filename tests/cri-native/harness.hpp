// A node for the tests of cri-native: the built plugin on the SDK's fake host, a network peer that only raises
// loopback, a busybox image made on the fly. Real namespaces, cgroups, mounts and processes, named after this test
// process and removed at the end.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gantry/abi/draft/image.h"
#include "gantry/abi/draft/runtime.h"
#include "gantry/sdk/result.hpp"
#include "proto/cri.pb.h"

namespace gantry::cri_native::testing {

namespace cri = runtime::v1;
using namespace std::chrono_literals;

inline constexpr auto patience = 30s;

bool eventually(const std::function<bool()>& condition, std::chrono::milliseconds limit = patience);
std::string read_text(const std::string& path);

class node {
public:
    node();
    ~node();
    node(const node&) = delete;
    node& operator=(const node&) = delete;

    // ---- the plugin's life -----------------------------------------------------------------------------------------
    /// Starts an instance of the plugin; there must be none.
    result<void> start();
    /// Ends the instance as a node that stops does; what runs goes on.
    void stop();
    result<void> restart() {
        stop();
        return start();
    }
    /// What the instance did wrong by the ABI's rules.
    std::vector<std::string> misbehaviour();

    // ---- operations ------------------------------------------------------------------------------------------------
    const gantry_runtime& runtime() const;
    const gantry_image& images() const;
    result<std::string> call(gantry_op_fn op, const std::string& bytes, const std::vector<int>& fds = {},
                             std::chrono::nanoseconds timeout = patience);
    template <class Response, class Request>
    result<Response> call(gantry_op_fn op, const Request& request, std::chrono::nanoseconds timeout = patience) {
        auto bytes = call(op, request.SerializeAsString(), {}, timeout);
        if (!bytes) return std::move(bytes).error();
        Response response;
        if (!response.ParseFromString(*bytes))
            return error{.code = code::internal, .message = "a reply that does not parse"};
        return response;
    }
    using op = std::uint64_t;
    op begin(gantry_op_fn op, const std::string& bytes, const std::vector<int>& fds = {});
    result<std::string> wait(op number, std::chrono::nanoseconds limit = patience);
    bool next_item(op number, std::string& bytes, std::chrono::nanoseconds limit = patience);
    void cancel(op number);

    // ---- the network peer ------------------------------------------------------------------------------------------
    void fail_network(bool on);
    int networks() const;      ///< ADDs without a DEL
    int network_calls() const; ///< ADDs and DELs

    // ---- shorthands ------------------------------------------------------------------------------------------------
    cri::PodSandboxConfig pod(const std::string& name) const;
    result<std::string> run_pod(const cri::PodSandboxConfig& config);
    result<void> stop_pod(const std::string& id);
    result<void> remove_pod(const std::string& id);
    cri::PodSandboxStatus pod_status(const std::string& id);

    cri::ContainerConfig container(const std::string& name, std::vector<std::string> command) const;
    cri::ContainerConfig shell(const std::string& name, const std::string& script) const {
        return container(name, {"/bin/sh", "-c", script});
    }
    result<std::string> create(const std::string& pod, const cri::ContainerConfig& config);
    result<void> start_container(const std::string& id);
    /// create and start.
    result<std::string> launch(const std::string& pod, const cri::ContainerConfig& config);
    result<void> stop_container(const std::string& id, int seconds);
    result<void> remove_container(const std::string& id);
    cri::ContainerStatus status(const std::string& id);
    bool wait_exit(const std::string& id);
    result<cri::ExecSyncResponse> exec(const std::string& id, std::vector<std::string> command,
                                       int timeout_seconds = 0);
    /// The payload of the container's log, lines of one stream or both ("").
    std::string log(const std::string& id, const std::string& stream = "");

    // ---- what is left on the machine
    // ---------------------------------------------------------------------------------
    const std::string& dir() const { return dir_; }
    const std::string& instance() const { return instance_; }
    std::string cgroup_parent() const { return "/" + instance_ + "/pods"; }
    /// Directories of a container's cgroup, one per hierarchy.
    std::vector<std::string> cgroups(const std::string& container) const;
    std::vector<int> processes(const std::string& container) const;
    std::vector<int> supervisors() const;
    /// Everything of this node that is still there: mounts, cgroups of pods, supervisors, records, layers. Empty when
    /// clean.
    std::vector<std::string> leftovers() const;

private:
    void load_image();

    struct parts;
    std::unique_ptr<parts> parts_;
    std::string dir_;
    std::string instance_;
};

} // namespace gantry::cri_native::testing
