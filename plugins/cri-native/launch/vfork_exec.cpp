#include "plugins/cri-native/launch/vfork_exec.hpp"

#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <string>

namespace gantry::cri_native::launch {

namespace {

// Sanitizers would write into memory that is not the child's.
#define UNCHECKED __attribute__((noinline, no_sanitize("address", "undefined", "thread")))

// CLONE_VM and CLONE_VFORK: nothing of a large process is copied, and we wait for the exec. The child runs on our stack,
// below the one frame that made it; so no call may lie between the system call and the child's first one.
#if defined(__x86_64__)
constexpr std::uint64_t borrowed = CLONE_VM | CLONE_VFORK;
[[gnu::always_inline]] inline long raw_call(long number, long a, long b, long c, long d, long e) {
    long out;
    register long r10 asm("r10") = d;
    register long r8 asm("r8") = e;
    asm volatile("syscall" : "=a"(out) : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8) : "rcx", "r11", "memory");
    return out;
}
#else
// A copy of our memory: dearer, and correct with any calling convention.
constexpr std::uint64_t borrowed = CLONE_VFORK;
inline long raw_call(long number, long a, long b, long c, long d, long e) {
    const long out = ::syscall(number, a, b, c, d, e);
    return out < 0 ? -errno : out;
}
#endif

// What the kernel's rt_sigaction takes. The wrapper of libc refuses the signals that it keeps for itself.
struct kernel_sigaction {
    void (*handler)(int);
    unsigned long flags;
    void (*restorer)();
    std::uint64_t mask;
};

struct child_state {
    const program* what;
    int error = 0; ///< written by the child: the memory is ours
};

UNCHECKED void close_from(int first) {
    if (::syscall(SYS_close_range, first, ~0u, 0) == 0) return;
    rlimit files{};
    ::getrlimit(RLIMIT_NOFILE, &files);
    for (auto fd = static_cast<rlim_t>(first); fd < files.rlim_cur; ++fd) ::close(static_cast<int>(fd));
}

// Runs in the child, on borrowed memory: system calls only.
[[noreturn]] UNCHECKED void become(child_state& state) {
    const program& what = *state.what;
    const kernel_sigaction by_default{};
    for (int s = 1; s <= 64; ++s) ::syscall(SYS_rt_sigaction, s, &by_default, nullptr, sizeof by_default.mask);
    ::setsid();
    int target = 0;
    for (const int source : what.descriptors) {
        if (::dup2(source, target++) < 0) {
            state.error = errno;
            ::_exit(127);
        }
    }
    close_from(target);
    const std::uint64_t none = 0;
    ::syscall(SYS_rt_sigprocmask, SIG_SETMASK, &none, nullptr, sizeof none);
    ::execve(what.path, what.argv, what.environment);
    state.error = errno;
    ::_exit(127);
}

UNCHECKED long make_child(clone_args& args, child_state& state) {
    const long pid = raw_call(SYS_clone3, reinterpret_cast<long>(&args), sizeof args, 0, 0, 0);
    if (pid == 0) become(state);
    return pid;
}

// Kernels before 5.3, and filters that know no clone3.
UNCHECKED long make_child_by_clone(int& pidfd, child_state& state) {
    const long pid = raw_call(SYS_clone, static_cast<long>(borrowed | CLONE_PIDFD | SIGCHLD), 0, reinterpret_cast<long>(&pidfd), 0, 0);
    if (pid == 0) become(state);
    return pid;
}

bool cgroup_refused(long err) {
    return err == EBUSY || err == EOPNOTSUPP || err == EINVAL || err == E2BIG || err == EACCES || err == EPERM || err == ENODEV ||
           err == ENOSYS;
}

/// Blocks every signal: a handler must not run in the child, on memory that is ours.
class signals_blocked {
public:
    signals_blocked() {
        sigset_t all;
        ::sigfillset(&all);
        ::pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    ~signals_blocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    signals_blocked(const signals_blocked&) = delete;
    signals_blocked& operator=(const signals_blocked&) = delete;

private:
    sigset_t before_;
};

} // namespace

result<spawned> vfork_exec(const program& what, int cgroup) {
    int pidfd = -1;
    child_state state{&what};
    clone_args args{};
    args.flags = borrowed | CLONE_PIDFD | (cgroup >= 0 ? CLONE_INTO_CGROUP : 0);
    args.pidfd = reinterpret_cast<std::uint64_t>(&pidfd);
    args.exit_signal = SIGCHLD;
    args.cgroup = cgroup >= 0 ? static_cast<std::uint64_t>(cgroup) : 0;
    long pid = -1;
    {
        const signals_blocked quiet;
        pid = make_child(args, state);
        if (pid == -ENOSYS && cgroup < 0) pid = make_child_by_clone(pidfd, state);
    }
    if (pid < 0 && cgroup >= 0 && cgroup_refused(-pid)) {
        auto refused = sys_error("clone into the cgroup", static_cast<int>(-pid));
        refused.code = code::unsupported;
        return refused;
    }
    if (pid < 0) return sys_error("clone", static_cast<int>(-pid));
    spawned child{static_cast<pid_t>(pid), base::unique_fd(pidfd)};
    if (state.error != 0) {
        while (::waitpid(child.pid, nullptr, 0) < 0 && errno == EINTR) {
        }
        return sys_error(std::string("run ") + what.path, state.error);
    }
    return child;
}

} // namespace gantry::cri_native::launch
