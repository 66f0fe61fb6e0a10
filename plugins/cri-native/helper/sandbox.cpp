#include "plugins/cri-native/helper/sandbox.hpp"

#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <memory>
#include <vector>

#include <seccomp.h>

#include "base/unique_fd.hpp"

namespace gantry::cri_helper {

namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool sanitized = true; // their runtimes need system calls and address space of their own
#else
constexpr bool sanitized = false;
#endif

base::unique_fd clone_tree(int fd, std::uint64_t attributes) {
    base::unique_fd tree(::open_tree(fd, "", AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC));
    mount_attr attr{};
    attr.attr_set = attributes | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC;
    attr.propagation = MS_PRIVATE; // else what is mounted on it appears on the original, too
    if (tree && ::mount_setattr(tree.get(), "", AT_EMPTY_PATH, &attr, sizeof attr) != 0) tree.reset();
    return tree;
}

constexpr const char* memory_and_exit[] = {"brk",
                                           "mmap",
                                           "munmap",
                                           "mremap",
                                           "mprotect",
                                           "madvise",
                                           "futex",
                                           "exit",
                                           "exit_group",
                                           "rt_sigreturn",
                                           "rt_sigaction",
                                           "rt_sigprocmask",
                                           "restart_syscall",
                                           "sigaltstack",
                                           "clock_gettime",
                                           "getrandom",
                                           "getpid",
                                           "gettid",
                                           "tgkill",
                                           "read",
                                           "pread64",
                                           "write",
                                           "close",
                                           "lseek",
                                           "fstat",
                                           "newfstatat",
                                           "poll",
                                           "ppoll",
                                           "sched_yield"};
constexpr const char* files[] = {"openat",    "mkdirat",    "mknodat",    "symlinkat", "linkat",    "unlinkat",
                                 "fchownat",  "fchown",     "fchmod",     "fchmodat",  "utimensat", "fsetxattr",
                                 "lsetxattr", "fgetxattr",  "flistxattr", "ftruncate", "pwrite64",  "getdents64",
                                 "fchdir",    "readlinkat", "statx",      "fcntl",     "fadvise64", "copy_file_range"};
constexpr const char* coordination[] = {"chdir",   "chroot",          "prctl",       "capget",   "capset",
                                        "seccomp", "wait4",           "close_range", "kill",     "pipe2",
                                        "getppid", "set_robust_list", "rseq",        "prlimit64"};
constexpr std::uint64_t clone_namespaces = 0x7e020000; // every CLONE_NEW* that clone(2) takes

struct filter_release {
    void operator()(void* filter) const noexcept { ::seccomp_release(filter); }
};

result<void> filter_calls(role r) {
    const std::unique_ptr<void, filter_release> filter(::seccomp_init(SCMP_ACT_ERRNO(EPERM)));
    if (!filter) return error{.message = "seccomp_init failed"};
    int status = 0;
    const auto allow = [&](const char* name) {
        const int number = ::seccomp_syscall_resolve_name(name);
        // A call that this architecture does not have needs no rule.
        if (status == 0 && number != __NR_SCMP_ERROR)
            status = ::seccomp_rule_add(filter.get(), SCMP_ACT_ALLOW, number, 0);
    };
    for (const char* name : memory_and_exit) allow(name);
    if (r != role::pump)
        for (const char* name : files) allow(name);
    if (r == role::coordinate) {
        for (const char* name : coordination) allow(name);
        const scmp_arg_cmp no_namespace{0, SCMP_CMP_MASKED_EQ, clone_namespaces, 0};
        if (status == 0)
            status = ::seccomp_rule_add_array(filter.get(), SCMP_ACT_ALLOW, SCMP_SYS(clone), 1, &no_namespace);
        // Its flags are behind a pointer; glibc falls back to clone.
        if (status == 0) status = ::seccomp_rule_add(filter.get(), SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
    }
    if (status == 0) status = ::seccomp_load(filter.get());
    if (status != 0) return sys_error("seccomp filter", -status);
    return {};
}

std::uint64_t bit(int capability) { return 1ull << capability; }

std::uint64_t capabilities_of(role r, powers p) {
    if (r == role::pump) return 0;
    std::uint64_t kept = bit(CAP_CHOWN) | bit(CAP_DAC_OVERRIDE) | bit(CAP_FOWNER) | bit(CAP_FSETID) | bit(CAP_SETFCAP);
    if (p.trusted_xattr) kept |= bit(CAP_SYS_ADMIN);
    if (p.device_nodes) kept |= bit(CAP_MKNOD);
    if (r == role::coordinate) kept |= bit(CAP_SYS_CHROOT) | bit(CAP_SETPCAP);
    return kept;
}

result<void> drop_capabilities(std::uint64_t kept) {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct data[2]{};
    if (::syscall(SYS_capget, &header, data) != 0) return sys_error("capget", errno);
    const std::uint64_t had = data[0].permitted | (std::uint64_t{data[1].permitted} << 32);
    if ((had & bit(CAP_SETPCAP)) != 0)
        for (int capability = 0; ::prctl(PR_CAPBSET_READ, capability, 0, 0, 0) >= 0; ++capability)
            if ((kept & bit(capability)) == 0 && ::prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0)
                return sys_error("drop capability " + std::to_string(capability) + " from the bounding set", errno);
    kept &= had;
    for (int word = 0; word < 2; ++word) {
        const auto part = static_cast<std::uint32_t>(kept >> (32 * word));
        data[word] = {part, part, 0};
    }
    if (::syscall(SYS_capset, &header, data) != 0) return sys_error("capset", errno);
    return {};
}

} // namespace

result<void> confine_to(int work_fd, int lower_fd) {
    // Clones are taken before the unshare: a mount of another namespace cannot be cloned.
    base::unique_fd work = clone_tree(work_fd, 0);
    if (!work) return sys_error("clone the mount of the work directory", errno);
    base::unique_fd lower = clone_tree(lower_fd, MOUNT_ATTR_RDONLY);
    if (!lower) return sys_error("clone the mount of the layers", errno);
    ::close(work_fd);
    ::close(lower_fd);
    if (::unshare(CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS) != 0) return sys_error("unshare", errno);
    if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
        return sys_error("make mounts private", errno);
    if (::move_mount(work.get(), "", AT_FDCWD, "/", MOVE_MOUNT_F_EMPTY_PATH) != 0)
        return sys_error("move_mount", errno);
    if (::fchdir(work.get()) != 0) return sys_error("fchdir", errno);
    if (::mkdir("lower", 0700) != 0 && errno != EEXIST) return sys_error("mkdir lower", errno);
    if (::move_mount(lower.get(), "", AT_FDCWD, "lower", MOVE_MOUNT_F_EMPTY_PATH) != 0)
        return sys_error("move_mount lower", errno);
    if (::syscall(SYS_pivot_root, ".", ".") == 0) {
        if (::umount2(".", MNT_DETACH) != 0) return sys_error("detach the old root", errno);
    } else if (errno != EINVAL || ::chroot(".") != 0) { // an initramfs cannot be pivoted away from, only covered
        return sys_error("pivot_root", errno);
    }
    if (::chdir("/") != 0) return sys_error("chdir /", errno);
    return {};
}

result<void> narrow_to(const char* path) {
    if (::chdir(path) != 0 || ::chroot(".") != 0 || ::chdir("/") != 0) return sys_error("chroot", errno);
    return {};
}

result<void> limit_resources(std::uint64_t file_bytes) {
    ::signal(SIGXFSZ, SIG_IGN); // write then fails with EFBIG, which an error can name
    const auto set = [](auto which, rlim_t value) -> result<void> {
        rlimit limit{};
        if (::getrlimit(which, &limit) != 0) return sys_error("getrlimit", errno);
        limit.rlim_max = std::min(limit.rlim_max, value);
        limit.rlim_cur = limit.rlim_max;
        if (::setrlimit(which, &limit) != 0) return sys_error("setrlimit", errno);
        return {};
    };
    GANTRY_CHECK(set(RLIMIT_CORE, 0));
    GANTRY_CHECK(set(RLIMIT_FSIZE, file_bytes));
    GANTRY_CHECK(set(RLIMIT_NOFILE, 1024));
    if (!sanitized) GANTRY_CHECK(set(RLIMIT_AS, rlim_t{2} << 30));
    return {};
}

result<void> assume(role r, powers p) {
    if (::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) return sys_error("PR_SET_DUMPABLE", errno);
    GANTRY_CHECK(drop_capabilities(capabilities_of(r, p)));
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return sys_error("PR_SET_NO_NEW_PRIVS", errno);
    return sanitized ? result<void>{} : filter_calls(r);
}

} // namespace gantry::cri_helper
