// The default profile: a list of what programs in containers may call. What is not listed fails with EPERM, syscalls
// that are newer than this list with ENOSYS (compile.cpp), so that libraries fall back to older ones.
//
// Left out on purpose: what acts on the node rather than on the container (mount, swapon, reboot, kexec, modules,
// clocks, quota), what has a history of holes and no use in most containers (io_uring, userfaultfd, keyctl, bpf,
// perf_event_open), and new user namespaces, which open most of the former to everybody. Capabilities give some of it
// back: whoever grants SYS_ADMIN has decided already.
#include <linux/capability.h>

#include <cerrno>

#include "plugins/cri-native/seccomp/profile.hpp"

namespace gantry::seccomp {

namespace {

using names = std::vector<std::string>;

const names files = {
    "access",
    "cachestat",
    "chdir",
    "chmod",
    "chown",
    "chown32",
    "close",
    "close_range",
    "copy_file_range",
    "creat",
    "dup",
    "dup2",
    "dup3",
    "faccessat",
    "faccessat2",
    "fadvise64",
    "fadvise64_64",
    "fallocate",
    "fchdir",
    "fchmod",
    "fchmodat",
    "fchmodat2",
    "fchown",
    "fchown32",
    "fchownat",
    "fcntl",
    "fcntl64",
    "fdatasync",
    "flock",
    "fstat",
    "fstat64",
    "fstatat64",
    "fstatfs",
    "fstatfs64",
    "fsync",
    "ftruncate",
    "ftruncate64",
    "futimesat",
    "getcwd",
    "getdents",
    "getdents64",
    "ioctl",
    "lchown",
    "lchown32",
    "link",
    "linkat",
    "listmount",
    "_llseek",
    "lseek",
    "lstat",
    "lstat64",
    "mkdir",
    "mkdirat",
    "mknod",
    "mknodat",
    "name_to_handle_at",
    "newfstatat",
    "open",
    "openat",
    "openat2",
    "pipe",
    "pipe2",
    "pread64",
    "preadv",
    "preadv2",
    "pwrite64",
    "pwritev",
    "pwritev2",
    "read",
    "readahead",
    "readlink",
    "readlinkat",
    "readv",
    "rename",
    "renameat",
    "renameat2",
    "rmdir",
    "sendfile",
    "sendfile64",
    "splice",
    "stat",
    "stat64",
    "statfs",
    "statfs64",
    "statmount",
    "statx",
    "symlink",
    "symlinkat",
    "sync",
    "sync_file_range",
    "syncfs",
    "tee",
    "truncate",
    "truncate64",
    "umask",
    "unlink",
    "unlinkat",
    "utime",
    "utimensat",
    "utimensat_time64",
    "utimes",
    "vmsplice",
    "write",
    "writev",
};

const names attributes = {
    "fgetxattr",   "flistxattr", "fremovexattr", "fsetxattr", "getxattr",    "getxattrat",    "lgetxattr", "listxattr",
    "listxattrat", "llistxattr", "lremovexattr", "lsetxattr", "removexattr", "removexattrat", "setxattr",  "setxattrat",
};

const names waiting = {
    "epoll_create", "epoll_create1",  "epoll_ctl",        "epoll_ctl_old", "epoll_pwait",   "epoll_pwait2",
    "epoll_wait",   "epoll_wait_old", "eventfd",          "eventfd2",      "fanotify_mark", "inotify_add_watch",
    "inotify_init", "inotify_init1",  "inotify_rm_watch", "_newselect",    "poll",          "ppoll",
    "ppoll_time64", "pselect6",       "pselect6_time64",  "select",        "signalfd",      "signalfd4",
};

const names asynchronous_io = {
    "io_cancel", "io_destroy", "io_getevents", "io_pgetevents", "io_pgetevents_time64", "io_setup", "io_submit",
};

const names memory = {
    "brk",
    "madvise",
    "map_shadow_stack",
    "membarrier",
    "memfd_create",
    "memfd_secret",
    "mincore",
    "mlock",
    "mlock2",
    "mlockall",
    "mmap",
    "mmap2",
    "mprotect",
    "mremap",
    "mseal",
    "msync",
    "munlock",
    "munlockall",
    "munmap",
    "pkey_alloc",
    "pkey_free",
    "pkey_mprotect",
    "process_mrelease",
    "remap_file_pages",
};

const names processes = {
    "capget",
    "capset",
    "execve",
    "execveat",
    "exit",
    "exit_group",
    "fork",
    "getpgid",
    "getpgrp",
    "getpid",
    "getppid",
    "getpriority",
    "getrlimit",
    "getrusage",
    "getsid",
    "gettid",
    "kill",
    "pause",
    "pidfd_open",
    "pidfd_send_signal",
    "prctl",
    "prlimit64",
    "restart_syscall",
    "rt_sigaction",
    "rt_sigpending",
    "rt_sigprocmask",
    "rt_sigqueueinfo",
    "rt_sigreturn",
    "rt_sigsuspend",
    "rt_sigtimedwait",
    "rt_sigtimedwait_time64",
    "rt_tgsigqueueinfo",
    "setpgid",
    "setpriority",
    "setrlimit",
    "setsid",
    "sigaltstack",
    "sigprocmask",
    "sigreturn",
    "tgkill",
    "tkill",
    "ugetrlimit",
    "uretprobe",
    "vfork",
    "wait4",
    "waitid",
    "waitpid",
};

const names debugging = {"process_vm_readv", "process_vm_writev",
                         "ptrace"}; // of one's own processes; safe since Linux 4.8

const names threads = {
    "futex",
    "futex_requeue",
    "futex_time64",
    "futex_wait",
    "futex_waitv",
    "futex_wake",
    "get_robust_list",
    "get_thread_area",
    "getcpu",
    "ioprio_get",
    "ioprio_set",
    "rseq",
    "sched_get_priority_max",
    "sched_get_priority_min",
    "sched_getaffinity",
    "sched_getattr",
    "sched_getparam",
    "sched_getscheduler",
    "sched_rr_get_interval",
    "sched_rr_get_interval_time64",
    "sched_setaffinity",
    "sched_setattr",
    "sched_setparam",
    "sched_setscheduler",
    "sched_yield",
    "set_robust_list",
    "set_thread_area",
    "set_tid_address",
};

const names identity = {
    "getegid",   "getegid32",   "geteuid",   "geteuid32",   "getgid",    "getgid32",    "getgroups", "getgroups32",
    "getresgid", "getresgid32", "getresuid", "getresuid32", "getuid",    "getuid32",    "setfsgid",  "setfsgid32",
    "setfsuid",  "setfsuid32",  "setgid",    "setgid32",    "setgroups", "setgroups32", "setregid",  "setregid32",
    "setresgid", "setresgid32", "setresuid", "setresuid32", "setreuid",  "setreuid32",  "setuid",    "setuid32",
};

// adjtimex and its kin only read without CAP_SYS_TIME.
const names time = {
    "adjtimex",
    "alarm",
    "clock_adjtime",
    "clock_adjtime64",
    "clock_getres",
    "clock_getres_time64",
    "clock_gettime",
    "clock_gettime64",
    "clock_nanosleep",
    "clock_nanosleep_time64",
    "getitimer",
    "gettimeofday",
    "nanosleep",
    "setitimer",
    "time",
    "timer_create",
    "timer_delete",
    "timer_getoverrun",
    "timer_gettime",
    "timer_gettime64",
    "timer_settime",
    "timer_settime64",
    "timerfd_create",
    "timerfd_gettime",
    "timerfd_gettime64",
    "timerfd_settime",
    "timerfd_settime64",
    "times",
};

const names network = {
    "accept",   "accept4", "bind",     "connect",    "getpeername",     "getsockname", "getsockopt",
    "listen",   "recv",    "recvfrom", "recvmmsg",   "recvmmsg_time64", "recvmsg",     "send",
    "sendmmsg", "sendmsg", "sendto",   "setsockopt", "shutdown",        "socketcall",  "socketpair",
};

const names ipc = {
    "ipc",
    "mq_getsetattr",
    "mq_notify",
    "mq_open",
    "mq_timedreceive",
    "mq_timedreceive_time64",
    "mq_timedsend",
    "mq_timedsend_time64",
    "mq_unlink",
    "msgctl",
    "msgget",
    "msgrcv",
    "msgsnd",
    "semctl",
    "semget",
    "semop",
    "semtimedop",
    "semtimedop_time64",
    "shmat",
    "shmctl",
    "shmdt",
    "shmget",
};

const names confinement = {"landlock_add_rule", "landlock_create_ruleset", "landlock_restrict_self", "seccomp"};

const names system = {"getrandom", "sysinfo", "uname"};

#if defined(__x86_64__)
const names architecture = {"arch_prctl", "modify_ldt"};
const names other_architectures = {"x86", "x32"};
#elif defined(__aarch64__)
const names architecture = {"arm_fadvise64_64", "arm_sync_file_range", "sync_file_range2",
                            "breakpoint",       "cacheflush",          "set_tls"};
const names other_architectures = {"arm"};
#elif defined(__riscv)
const names architecture = {"riscv_flush_icache", "riscv_hwprobe"};
const names other_architectures = {};
#else
const names architecture = {};
const names other_architectures = {};
#endif

struct capability_grant {
    int capability;
    names syscalls;
};

const capability_grant grants[] = {
    {CAP_DAC_READ_SEARCH, {"open_by_handle_at"}},
    {CAP_SYS_ADMIN,
     {"bpf",
      "clone",
      "clone3",
      "fanotify_init",
      "fsconfig",
      "fsmount",
      "fsopen",
      "fspick",
      "lookup_dcookie",
      "lsm_get_self_attr",
      "lsm_list_modules",
      "lsm_set_self_attr",
      "mount",
      "mount_setattr",
      "move_mount",
      "open_tree",
      "perf_event_open",
      "quotactl",
      "quotactl_fd",
      "setdomainname",
      "sethostname",
      "setns",
      "syslog",
      "umount",
      "umount2",
      "unshare"}},
    {CAP_SYS_BOOT, {"reboot"}},
    {CAP_SYS_CHROOT, {"chroot"}},
    {CAP_SYS_MODULE, {"delete_module", "finit_module", "init_module"}},
    {CAP_SYS_PACCT, {"acct"}},
    {CAP_SYS_PTRACE, {"kcmp", "pidfd_getfd", "process_madvise"}},
    {CAP_SYS_RAWIO, {"ioperm", "iopl"}},
    {CAP_SYS_TIME, {"clock_settime", "clock_settime64", "settimeofday", "stime"}},
    {CAP_SYS_TTY_CONFIG, {"vhangup"}},
    {CAP_SYS_NICE, {"get_mempolicy", "mbind", "set_mempolicy", "set_mempolicy_home_node"}},
    {CAP_SYSLOG, {"syslog"}},
    {CAP_BPF, {"bpf"}},
    {CAP_PERFMON, {"perf_event_open"}},
};

/// Address families that a container may use: all but those without users and with a history of holes (DECnet, AX.25
/// kin, IrDA, ...), AF_ALG, and AF_VSOCK, which reaches the hypervisor past every network policy.
constexpr unsigned families_below = 12;
constexpr unsigned families[] = {13, 14, 15, 16, 17, 18, 21, 22, 24, 26, 27, 28, 29,
                                 30, 31, 32, 33, 35, 36, 39, 41, 42, 43, 44, 45};

/// Values of personality(2): Linux, Linux 32 bit, both with UNAME26, and the question 0xffffffff.
constexpr std::uint64_t personalities[] = {0x0, 0x8, 0x20000, 0x20008, 0xffffffff};

/// CLONE_NEWNS | NEWCGROUP | NEWUTS | NEWIPC | NEWUSER | NEWPID | NEWNET: none of them may be in clone's flags.
constexpr std::uint64_t namespace_flags = 0x7e020000;

bool has(std::uint64_t capabilities, int number) { return (capabilities >> number & 1) != 0; }

} // namespace

profile default_profile(std::uint64_t capabilities) {
    profile made;
    made.architectures = other_architectures;
    for (const auto& group : {files, attributes, waiting, asynchronous_io, memory, processes, debugging, threads,
                              identity, time, network, ipc, confinement, system, architecture})
        made.rules.push_back({.names = group});
    made.rules.push_back(
        {.names = {"socket"}, .when = {{.index = 0, .op = comparison::less, .value = families_below}}});
    for (const auto family : families)
        made.rules.push_back({.names = {"socket"}, .when = {{.index = 0, .value = family}}});
    for (const auto value : personalities)
        made.rules.push_back({.names = {"personality"}, .when = {{.index = 0, .value = value}}});
    for (const auto& grant : grants)
        if (has(capabilities, grant.capability)) made.rules.push_back({.names = grant.syscalls});
    if (!has(capabilities, CAP_SYS_ADMIN)) {
#if defined(__s390x__)
        constexpr unsigned flags_argument = 1;
#else
        constexpr unsigned flags_argument = 0;
#endif
        made.rules.push_back(
            {.names = {"clone"},
             .when = {
                 {.index = flags_argument, .op = comparison::masked_equal, .value = namespace_flags, .value_two = 0}}});
        // Its flags are in memory, where a filter cannot look: callers that see ENOSYS use clone instead.
        made.rules.push_back({.names = {"clone3"}, .then = action::error, .error_number = ENOSYS});
    }
    return made;
}

} // namespace gantry::seccomp
