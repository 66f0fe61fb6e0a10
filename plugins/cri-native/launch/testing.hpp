// For tests: a pod with a real supervisor, a busybox root, cgroups and logs, all named after this process and removed
// at the end. Blocking wrappers around client.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plugins/cri-native/launch/client.hpp"

namespace gantry::cri_native::launch::testing {

using namespace std::chrono_literals;
inline constexpr auto patience = 20s;

/// A directory of this test process, removed with everything below it (mounts detached) at the end.
class scratch {
public:
    scratch();
    ~scratch();
    scratch(const scratch&) = delete;
    scratch& operator=(const scratch&) = delete;
    const std::string& path() const { return path_; }
    std::string operator/(const std::string& name) const { return path_ + "/" + name; }

private:
    std::string path_;
};

/// Cgroups of one container or supervisor in every hierarchy of this host, on request in a hybrid host's cgroup2 too;
/// killed and removed at the end.
class test_cgroup {
public:
    explicit test_cgroup(const std::string& name, bool hybrid = false);
    ~test_cgroup();
    test_cgroup(const test_cgroup&) = delete;
    test_cgroup& operator=(const test_cgroup&) = delete;
    const cgroup_plan& plan() const { return plan_; }
    std::string dir(const std::string& controller) const;
    std::vector<std::string> dirs() const;
    std::vector<std::string> v1_dirs() const;

private:
    cgroup_plan plan_;
};

/// Bit of a capability by its name; throws for a name that is none.
std::uint64_t capability_bit(std::string_view name);
/// Every capability that this build knows by name.
std::uint64_t all_capabilities();

/// Waits for a condition; false after `patience`.
bool eventually(const std::function<bool()>& condition, std::chrono::milliseconds limit = patience);
std::string read_all(const std::string& path);
void write_all(const std::string& path, const std::string& text);
/// Names in a directory; none when it is not there.
std::vector<std::string> names_in(const std::string& dir);
/// The payloads of a CRI log, pieces joined, of one stream or both ("").
std::string log_text(const std::string& path, const std::string& stream = "");

/// An answer that may come after its test gave up waiting.
template <class T>
class answer {
public:
    callback<T> fn() const {
        return [state = state_](result<T> r) { state->emplace(std::move(r)); };
    }
    bool came() const { return state_->has_value(); }
    void forget() { state_->reset(); }
    result<T>& operator*() { return **state_; }
    result<T>* operator->() { return &**state_; }

private:
    std::shared_ptr<std::optional<result<T>>> state_ = std::make_shared<std::optional<result<T>>>();
};

class pod {
public:
    struct options {
        sandbox_plan plan{};
        std::vector<int> forbidden_syscalls{}; ///< the supervisor is born under a filter that says ENOSYS to them
    };

    pod() : pod(options{}) {}
    explicit pod(options o);
    ~pod();

    launch::client& client() { return *client_; }
    bool has_client() const { return client_ != nullptr; }
    const std::string& run_dir() const { return run_dir_; }
    scratch& dir() { return dir_; }
    const std::optional<error>& lost() const { return lost_; }
    const std::optional<error>& failure() const { return failure_; } ///< of the set-up

    /// A plan for `sh -c script` on a fresh writable overlay of busybox, with the default mounts and devices, uid 0,
    /// the default capabilities, no cgroup.
    container_plan plan(const std::string& id, std::vector<std::string> argv);
    container_plan shell(const std::string& id, const std::string& script) {
        return plan(id, {"/bin/sh", "-c", script});
    }
    std::string log_path(const std::string& id) const { return dir_ / (id + ".log"); }
    std::string log(const std::string& id, const std::string& stream = "") const {
        return log_text(log_path(id), stream);
    }
    /// The image's directory, shared by the containers of this pod that are made afterwards.
    std::string image();

    result<pid_t> create(const container_plan& plan);
    result<void> start(const std::string& id);
    result<void> create_and_start(const container_plan& plan);
    result<void> signal(const std::string& id, int signal);
    /// Waits for the exit event.
    std::optional<container_info> wait_exit(const std::string& id, std::chrono::milliseconds limit = patience);
    /// Create, start, wait; the container's output is in log(id) then.
    result<container_info> run(const container_plan& plan);
    result<exec_result> exec(const std::string& id, const exec_plan& plan);
    result<exec_result> exec(const std::string& id, const std::string& script);
    static exec_plan exec_shell(const std::string& script);

    /// Lets the client work until done says so.
    bool pump(const std::function<bool()>& done, std::chrono::milliseconds limit = patience);
    /// Runs one call that takes a callback to its end.
    template <class T>
    result<T> await(const std::function<void(callback<T>)>& call) {
        answer<T> reply;
        call(reply.fn());
        if (!pump([&] { return reply.came(); }))
            return error{.code = code::timeout, .message = "no answer from the supervisor"};
        return std::move(*reply);
    }

    /// As if the plugin's process had died: the client goes away, the supervisor stays.
    void drop_client() { client_.reset(); }
    result<std::vector<container_info>> reconnect();
    pid_t supervisor_pid() { return client_ ? client_->pid() : 0; }

private:
    client::events handlers();

    scratch dir_;
    std::string run_dir_;
    std::unique_ptr<launch::client> client_;
    std::vector<container_info> exits_;
    std::optional<error> lost_;
    std::optional<error> failure_;
    bool image_made_ = false;
};

} // namespace gantry::cri_native::launch::testing
