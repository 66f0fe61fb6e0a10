#include "core/host/spawn.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace gantry::core {

namespace {

/// What the child needs, made before it exists: it must not allocate.
struct plan {
    char* const* argv;
    char* const* envp;
    const int* sources; ///< descriptor i of the child, -1 for /dev/null
    int* moved;         ///< room for as many
    int count;
    int join_fd;
    // Set by the child before it gives up:
    const char* step = nullptr;
    int failure = 0;
};

[[noreturn]] void give_up(plan& plan, const char* step) {
    plan.failure = errno;
    plan.step = step;
    ::_exit(127);
}

void default_signals() {
    struct sigaction action {};
    action.sa_handler = SIG_DFL;
    for (int signal = 1; signal < NSIG; ++signal) ::sigaction(signal, &action, nullptr); // fails for SIGKILL and SIGSTOP, as it must
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

/// Sources first move above the targets, then into place: a target may be another one's source.
void arrange_descriptors(plan& plan) {
    for (int i = 0; i < plan.count; ++i) {
        const int fd = plan.sources[i] >= 0 ? plan.sources[i] : ::open("/dev/null", O_RDWR | O_CLOEXEC);
        plan.moved[i] = fd < 0 ? -1 : ::fcntl(fd, F_DUPFD_CLOEXEC, plan.count);
        if (plan.moved[i] < 0) give_up(plan, "pass a descriptor");
    }
    for (int i = 0; i < plan.count; ++i)
        if (::dup2(plan.moved[i], i) < 0) give_up(plan, "pass a descriptor");
    if (::close_range(static_cast<unsigned>(plan.count), ~0u, 0) != 0) give_up(plan, "close_range");
}

int child(void* argument) {
    auto& p = *static_cast<plan*>(argument);
    if (p.join_fd >= 0 && ::write(p.join_fd, "0", 1) != 1) give_up(p, "join its cgroup");
    if (::setsid() < 0) give_up(p, "setsid");
    default_signals();
    arrange_descriptors(p);
    if (::chdir("/") != 0) give_up(p, "chdir /");
    ::execve(p.argv[0], p.argv, p.envp);
    give_up(p, "execve");
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
    std::vector<char*> out;
    for (const auto& text : texts) out.push_back(const_cast<char*>(text.c_str()));
    out.push_back(nullptr);
    return out;
}

} // namespace

result<helper_process> spawn_helper(const helper_program& program) {
    if (program.argv.empty() || program.argv[0].empty() || program.argv[0][0] != '/')
        return error{.code = code::invalid, .message = "spawn: argv[0] must be an absolute path", .sys_errno = EINVAL};
    const auto argv = pointers(program.argv);
    const auto envp = pointers(program.envp);
    auto sources = program.fds;
    if (sources.size() < 3) sources.resize(3, -1);
    std::vector<int> moved(sources.size());
    plan plan{.argv = argv.data(),
              .envp = envp.data(),
              .sources = sources.data(),
              .moved = moved.data(),
              .count = static_cast<int>(sources.size()),
              .join_fd = program.join_fd};

    constexpr std::size_t stack_size = 64 * 1024;
    void* const stack = ::mmap(nullptr, stack_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (stack == MAP_FAILED) return sys_error("spawn " + program.argv[0] + ": mmap", errno);
    // No handler of ours may run in the child, which shares our memory.
    sigset_t all, before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    int pidfd = -1;
    const int pid = ::clone(child, static_cast<char*>(stack) + stack_size, CLONE_VM | CLONE_VFORK | CLONE_PIDFD | SIGCHLD, &plan, &pidfd);
    const int failure = errno;
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    ::munmap(stack, stack_size);
    if (pid < 0) return sys_error("spawn " + program.argv[0] + ": clone", failure);
    helper_process helper{.pid = pid, .pidfd = base::unique_fd(pidfd)};
    if (plan.failure == 0) return helper;
    ::waitpid(pid, nullptr, 0); // it has ended already
    return sys_error("spawn " + program.argv[0] + ": " + plan.step, plan.failure);
}

} // namespace gantry::core
