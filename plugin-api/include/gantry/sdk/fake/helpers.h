// Helper processes of the fake host: real ones, in a process group of their own instead of a cgroup.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "../../abi/host.h"
#include "message.h"

namespace gantry::fake {

class helpers {
public:
    using on_exit = std::function<void(int wait_status, bool timed_out)>;

    helpers() = default;
    ~helpers() {
        for (auto& one : threads_) one.join();
    }
    helpers(const helpers&) = delete;
    helpers& operator=(const helpers&) = delete;

    /// The pid, or a negated errno. f runs on a thread of its own.
    std::int64_t spawn(const gantry_exec_request& request, on_exit f) {
        std::vector<std::string> argv, env;
        for (std::uint32_t i = 0; i < request.argc; ++i) argv.push_back(to_string(request.argv[i]));
        for (std::uint32_t i = 0; i < request.envc; ++i) env.push_back(to_string(request.envp[i]));
        if (argv.empty() || argv.front().empty() || argv.front().front() != '/') return -EINVAL;

        // Copies above every target, so that no dup2 of the child overwrites the source of a later one.
        std::vector<shared_fd> sources;
        posix_spawn_file_actions_t actions;
        posix_spawn_file_actions_init(&actions);
        for (std::uint32_t i = 0; i < request.fd_count; ++i) {
            if (request.fds[i] < 0) {
                posix_spawn_file_actions_addopen(&actions, static_cast<int>(i), "/dev/null", O_RDWR, 0);
                continue;
            }
            sources.push_back(own_fd(::fcntl(request.fds[i], F_DUPFD_CLOEXEC, static_cast<int>(request.fd_count) + 3)));
            posix_spawn_file_actions_adddup2(&actions, *sources.back(), static_cast<int>(i));
        }
        posix_spawnattr_t attributes;
        posix_spawnattr_init(&attributes);
        posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
        pid_t pid = -1;
        const int failed = ::posix_spawn(&pid, argv.front().c_str(), &actions, &attributes, pointers(argv).data(),
                                         pointers(env).data());
        posix_spawnattr_destroy(&attributes);
        posix_spawn_file_actions_destroy(&actions);
        if (failed != 0) return -failed;

        const std::lock_guard<std::mutex> lock(mutex_);
        running_.push_back(pid);
        threads_.emplace_back(
            [this, pid, deadline = request.deadline_ns, f = std::move(f)] { reap(pid, deadline, f); });
        return pid;
    }
    void kill(std::int64_t pid) {
        const std::lock_guard<std::mutex> lock(mutex_);
        const auto own = static_cast<pid_t>(pid);
        if (std::find(running_.begin(), running_.end(), own) != running_.end()) ::kill(-own, SIGKILL);
    }
    void kill_all() {
        const std::lock_guard<std::mutex> lock(mutex_);
        for (const auto pid : running_) ::kill(-pid, SIGKILL);
    }

private:
    static std::vector<char*> pointers(std::vector<std::string>& texts) {
        std::vector<char*> out;
        for (auto& one : texts) out.push_back(one.data());
        out.push_back(nullptr);
        return out;
    }
    void reap(pid_t pid, std::int64_t deadline_ns, const on_exit& f) {
        const auto pidfd = own_fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
        pollfd ended{*pidfd, POLLIN, 0};
        const bool timed_out = *pidfd >= 0 && !wait(ended, deadline_ns);
        if (timed_out) kill(pid);
        siginfo_t info{};
        while (::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT) < 0 && errno == EINTR) {
        }
        int status = 0;
        {
            const std::lock_guard<std::mutex> lock(mutex_); // kill() must not meet a pid that was reaped
            ::waitpid(pid, &status, 0);
            running_.erase(std::remove(running_.begin(), running_.end(), pid), running_.end());
        }
        f(status, timed_out);
    }
    static bool wait(pollfd& ended, std::int64_t deadline_ns) {
        for (;;) {
            const auto now = std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
            const auto left = deadline_ns == INT64_MAX ? INT64_C(3600000)
                                                       : std::max<std::int64_t>(0, (deadline_ns - now) / 1000000 + 1);
            if (::poll(&ended, 1, static_cast<int>(std::min<std::int64_t>(left, 3600000))) == 1) return true;
            if (deadline_ns != INT64_MAX && now >= deadline_ns) return false;
        }
    }

    std::mutex mutex_;
    std::vector<pid_t> running_;
    std::vector<std::thread> threads_;
};

} // namespace gantry::fake
