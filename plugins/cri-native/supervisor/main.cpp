// The pod supervisor: one thread, one per pod. It lives in the pod's network, IPC and UTS namespaces and the host's
// others, starts the pod's containers, keeps their streams and outlives the plugin that started it. It inherits these
// descriptors: 3 the listening socket, 4 the run directory, 5 the sandbox plan; 6 is its own program. An argument says
// that it was born in its v2 cgroup.
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <initializer_list>

#include "plugins/cri-native/supervisor/container.hpp"
#include "plugins/cri-native/supervisor/deadlines.hpp"
#include "plugins/cri-native/supervisor/exec.hpp"
#include "plugins/cri-native/supervisor/loop.hpp"
#include "plugins/cri-native/supervisor/sandbox.hpp"
#include "plugins/cri-native/supervisor/server.hpp"
#include "plugins/cri-native/supervisor/spawn.hpp"
#include "plugins/cri-native/supervisor/sys.hpp"

namespace gantry::cri_native::supervisor {

namespace {

constexpr int listening_fd = 3;
constexpr int run_dir_fd = 4;
constexpr int plan_fd = 5;
constexpr int image_fd = 6;

watcher children;

void reap(pid_t pid, int code, int signal) noexcept {
    if (container_ended(pid, code, signal) || exec_ended(pid, code, signal)) return;
    if (pid == sandbox().pod_init_pid()) ::_exit(1); // the pod's PID namespace is gone, and every container with it
}

void child_ended(void*, std::uint32_t) noexcept {
    signalfd_siginfo seen;
    while (::read(children.fd(), &seen, sizeof seen) > 0) {
    }
    for (;;) {
        siginfo_t end{};
        if (::waitid(P_ALL, 0, &end, WEXITED | WNOHANG) != 0 || end.si_pid == 0) return;
        const bool exited = end.si_code == CLD_EXITED;
        reap(end.si_pid, exited ? end.si_status : 0, exited ? 0 : end.si_status);
    }
}

bool watch_children() noexcept {
    sigset_t mask;
    ::sigemptyset(&mask);
    ::sigaddset(&mask, SIGCHLD);
    ::sigprocmask(SIG_BLOCK, &mask, nullptr);
    children.assign(::signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK), child_ended, nullptr);
    return children.arm(EPOLLIN);
}

// Only SIGKILL ends it from outside: a terminal's hang-up or a service manager's SIGTERM must not cost the pod.
void ignore_signals() noexcept {
    for (const int s :
         {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE, SIGUSR1, SIGUSR2, SIGALRM, SIGTSTP, SIGTTIN, SIGTTOU})
        ::signal(s, SIG_IGN);
}

// Containers inherit what the plugin's process was pinned to, and no cpuset would widen it again.
void use_all_cpus() noexcept {
    unsigned long all[128];
    for (auto& word : all) word = ~0ul;
    ::sched_setaffinity(0, sizeof all, reinterpret_cast<const cpu_set_t*>(all));
}

} // namespace

std::int64_t next_deadline() noexcept { return earlier(containers_deadline(), execs_deadline()); }

void run_deadlines() noexcept {
    const std::int64_t now = sys::steady_ns();
    expire_containers(now);
    expire_execs(now);
}

} // namespace gantry::cri_native::supervisor

int main(int argc, char**) {
    using namespace gantry::cri_native::supervisor;
    sys::probe();
    ::prctl(PR_SET_NAME, "gantry-pod", 0, 0, 0);
    ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    ::umask(0);
    ignore_signals();
    use_all_cpus();
    ::close(image_fd);
    for (const int fd : {listening_fd, run_dir_fd, plan_fd}) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
    if (::chdir("/") != 0 || !open_loop() || !watch_children() || !remember_pid_namespace()) return 1;
    sandbox().set_up(plan_fd, run_dir_fd, argc > 1);
    ::close(plan_fd);
    if (!open_server(listening_fd)) return 1;
    run_loop();
}
