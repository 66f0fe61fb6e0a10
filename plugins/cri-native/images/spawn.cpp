#include "plugins/cri-native/images/spawn.hpp"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <mutex>

#include "base/unique_fd.hpp"

namespace gantry::images {

namespace {

class child final : public process {
public:
    explicit child(pid_t pid) : pid_(pid) {}
    child(const child&) = delete;
    child& operator=(const child&) = delete;
    ~child() override {
        kill();
        wait();
    }

    void kill() override {
        const std::scoped_lock lock(mutex_); // a reaped pid may be somebody else's
        if (!reaped_) ::kill(pid_, SIGKILL);
    }

    int wait() override {
        siginfo_t info{};
        while (::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT) != 0 && errno == EINTR) {
        }
        const std::scoped_lock lock(mutex_);
        if (!reaped_) ::waitpid(pid_, &status_, 0);
        reaped_ = true;
        return status_;
    }

private:
    const pid_t pid_;
    std::mutex mutex_;
    bool reaped_ = false;
    int status_ = 0;
};

/// posix_spawn's dup2 list may overwrite a descriptor that a later one names: first all move out of the way.
result<std::vector<base::unique_fd>> lift(const std::vector<int>& fds) {
    std::vector<base::unique_fd> lifted;
    for (const int fd : fds) {
        lifted.emplace_back(::fcntl(fd, F_DUPFD_CLOEXEC, static_cast<int>(fds.size())));
        if (!lifted.back()) return sys_error("dup", errno);
    }
    return lifted;
}

} // namespace

spawner posix_spawner() {
    return [](const spawn_request& request) -> result<std::unique_ptr<process>> {
        GANTRY_TRY(const auto fds, lift(request.fds));
        posix_spawn_file_actions_t actions;
        ::posix_spawn_file_actions_init(&actions);
        for (std::size_t i = 0; i < fds.size(); ++i)
            ::posix_spawn_file_actions_adddup2(&actions, fds[i].get(), static_cast<int>(i));
        ::posix_spawn_file_actions_addclosefrom_np(&actions, static_cast<int>(fds.size()));

        posix_spawnattr_t attributes;
        ::posix_spawnattr_init(&attributes);
        sigset_t signals;
        ::sigemptyset(&signals);
        ::posix_spawnattr_setsigmask(&attributes, &signals);
        ::sigfillset(&signals);
        ::posix_spawnattr_setsigdefault(&attributes, &signals);
        ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);

        std::vector<char*> argv;
        for (const auto& arg : request.argv) argv.push_back(const_cast<char*>(arg.c_str()));
        argv.push_back(nullptr);
        char* envp[] = {nullptr};
        pid_t pid = -1;
        const int failure = ::posix_spawn(&pid, argv[0], &actions, &attributes, argv.data(), envp);
        ::posix_spawnattr_destroy(&attributes);
        ::posix_spawn_file_actions_destroy(&actions);
        if (failure != 0) return sys_error("start " + request.argv[0], failure);
        return std::unique_ptr<process>(std::make_unique<child>(pid));
    };
}

} // namespace gantry::images
