#include "plugins/cri-native/supervisor/pod_init.hpp"

#include <linux/capability.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "plugins/cri-native/supervisor/sys.hpp"

namespace gantry::cri_native::supervisor {

namespace {

constexpr unsigned nobody = 65534;

bool hide_host(text run_dir) noexcept {
    path_line root;
    root.add(run_dir).add("/rootfs");
    return ::mount(nullptr, "/", nullptr, MS_SLAVE | MS_REC, nullptr) == 0 &&
           ::mount("tmpfs", root.c_str(), "tmpfs", MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC,
                   "mode=555,nr_inodes=2") == 0 &&
           ::chdir(root.c_str()) == 0 &&
           (sys::pivot_root(".", ".") == 0 ? ::umount2(".", MNT_DETACH) == 0 : ::chroot(".") == 0) && ::chdir("/") == 0;
}

bool drop_everything() noexcept {
    __user_cap_header_struct head{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct none[2]{};
    return ::syscall(SYS_setgroups, 0, nullptr) == 0 && ::syscall(SYS_setresgid, nobody, nobody, nobody) == 0 &&
           ::syscall(SYS_setresuid, nobody, nobody, nobody) == 0 && ::syscall(SYS_capset, &head, none) == 0 &&
           ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0;
}

void close_all() noexcept {
    if (sys::close_range(0, ~0u, 0) == 0) return;
    for (int fd = 0; fd < 1024; ++fd) ::close(fd); // at the supervisor's start: few are open
}

} // namespace

void run_pod_init(text run_dir) noexcept {
    ::setsid();
    ::prctl(PR_SET_NAME, "pause", 0, 0, 0);
    if (!hide_host(run_dir) || !drop_everything()) ::_exit(1);
    close_all();
    sigset_t child_ended;
    ::sigemptyset(&child_ended);
    ::sigaddset(&child_ended, SIGCHLD);
    ::sigprocmask(SIG_SETMASK, &child_ended, nullptr);
    for (;;) {
        while (::waitpid(-1, nullptr, WNOHANG) > 0) {
        }
        ::sigwaitinfo(&child_ended, nullptr);
    }
}

} // namespace gantry::cri_native::supervisor
