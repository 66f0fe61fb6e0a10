// Helper processes: a program that the host starts in a cgroup of its own, with a deadline.
#pragma once

#include <sys/wait.h>

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "detail/context.hpp"
#include "op.hpp"

namespace gantry::sdk {

struct command {
    std::vector<std::string> argv;             ///< argv[0] is an absolute path
    std::vector<std::string> env{};            ///< NAME=value; the helper inherits nothing else
    std::vector<std::int32_t> fds{-1, -1, -1}; ///< become 0, 1, 2, ... in the helper; -1 is /dev/null; borrowed
    time_point deadline = time_point::max();
};

struct exit_status {
    int wait_status = 0; ///< as of waitpid(2)
    bool timed_out = false;

    bool success() const noexcept { return !timed_out && WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0; }
    /// "exit code 3", "signal 9", "killed at its deadline"
    std::string text() const {
        if (timed_out) return "killed at its deadline";
        if (WIFSIGNALED(wait_status)) return "signal " + std::to_string(WTERMSIG(wait_status));
        return "exit code " + std::to_string(WEXITSTATUS(wait_status));
    }
};

namespace detail {

using exit_callback = callback<void(exit_status)>;

inline void on_exit(void* raw, std::int32_t wait_status, std::int32_t timed_out) noexcept {
    const auto one = context::claim<exit_callback>(raw);
    if (!one) return;
    const auto self = one->owner.shared_from_this();
    self->guarded(one->kind, one->f, exit_status{wait_status, timed_out != 0});
}

inline void kill(const context& owner, std::int64_t pid) noexcept {
    if (owner.open() && owner.host().exec != nullptr) owner.host().exec->kill(owner.host().exec->host, pid);
}

inline result<std::int64_t> spawn(const std::shared_ptr<context>& owner, const command& what,
                                  unique_function<void(exit_status)> f) {
    if (!owner->open()) return owner->closed();
    const auto* service = owner->host().exec;
    if (service == nullptr) return missing_service(GANTRY_SERVICE_EXEC);
    if (what.argv.empty()) return error{.code = code::invalid, .message = "start a helper: argv is empty"};
    std::vector<gantry_str> argv, env;
    for (const auto& one : what.argv) argv.push_back(str(one));
    for (const auto& one : what.env) env.push_back(str(one));
    gantry_exec_request request{};
    request.struct_size = sizeof(request);
    request.argc = static_cast<std::uint32_t>(argv.size());
    request.argv = argv.data();
    request.envp = env.data();
    request.envc = static_cast<std::uint32_t>(env.size());
    request.fd_count = static_cast<std::uint32_t>(what.fds.size());
    request.fds = what.fds.data();
    request.deadline_ns = to_ns(what.deadline);
    auto* one = owner->keep<void(exit_status)>("an exit callback", std::move(f));
    const auto pid = service->spawn(service->host, &request, &on_exit, one);
    if (pid > 0) return pid;
    owner->free(one);
    return sys_error("start helper " + what.argv.front(), static_cast<int>(-pid));
}

inline result<exit_status> run_wait(const std::shared_ptr<context>& owner, const command& what, std::stop_token stop) {
    struct shared {
        std::mutex mutex;
        std::condition_variable_any ended;
        std::optional<exit_status> status;
    };
    const auto wait = std::make_shared<shared>();
    GANTRY_TRY(const auto pid, spawn(owner, what, [wait](exit_status status) {
                   const std::lock_guard lock(wait->mutex);
                   wait->status = status;
                   wait->ended.notify_all();
               }));
    std::unique_lock lock(wait->mutex);
    wait->ended.wait(lock, stop, [&] { return wait->status.has_value(); });
    if (wait->status) return *wait->status;
    lock.unlock();
    kill(*owner, pid);
    return error{.code = code::cancelled,
                 .message = "helper " + what.argv.front() + " was killed: its caller gave up",
                 .retryable = true};
}

} // namespace detail
} // namespace gantry::sdk
