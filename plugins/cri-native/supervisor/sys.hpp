// System calls that glibc 2.36 does not wrap, and the table of those that may be missing or forbidden.
#pragma once

#include <fcntl.h>
#include <linux/openat2.h>
#include <linux/sched.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>

namespace gantry::cri_native::supervisor::sys {

/// Features this kernel (or the seccomp filter around us) grants: bits of launch::wire::feature. Set once by probe().
extern std::uint32_t features;
inline bool has(std::uint32_t feature) noexcept { return (features & feature) != 0; }
void probe() noexcept;

inline int clone3(clone_args* args) noexcept { return static_cast<int>(::syscall(SYS_clone3, args, sizeof *args)); }
inline int pidfd_open(pid_t pid) noexcept { return static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)); }
inline int pidfd_send_signal(int pidfd, int signal) noexcept {
    return static_cast<int>(::syscall(SYS_pidfd_send_signal, pidfd, signal, nullptr, 0));
}
inline int open_tree(int dir, const char* path, unsigned flags) noexcept {
    return static_cast<int>(::syscall(SYS_open_tree, dir, path, flags));
}
inline int move_mount(int from, const char* from_path, int to, const char* to_path, unsigned flags) noexcept {
    return static_cast<int>(::syscall(SYS_move_mount, from, from_path, to, to_path, flags));
}
inline int fsopen(const char* type) noexcept { return static_cast<int>(::syscall(SYS_fsopen, type, FSOPEN_CLOEXEC)); }
inline int fsconfig(int fs, unsigned command, const char* key, const void* value) noexcept {
    return static_cast<int>(::syscall(SYS_fsconfig, fs, command, key, value, 0));
}
inline int fsmount(int fs, unsigned attributes) noexcept {
    return static_cast<int>(::syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC, attributes));
}
inline int set_mount_attributes(int dir, const char* path, unsigned flags, mount_attr* attr) noexcept {
    return static_cast<int>(::syscall(SYS_mount_setattr, dir, path, flags, attr, sizeof *attr));
}
inline int pivot_root(const char* root, const char* old) noexcept {
    return static_cast<int>(::syscall(SYS_pivot_root, root, old));
}
inline int close_range(unsigned first, unsigned last, unsigned flags) noexcept {
    return static_cast<int>(::syscall(SYS_close_range, first, last, flags));
}
inline int openat2(int dir, const char* path, std::uint64_t flags, std::uint64_t resolve) noexcept {
    open_how how{};
    how.flags = flags;
    how.resolve = resolve;
    return static_cast<int>(::syscall(SYS_openat2, dir, path, &how, sizeof how));
}

/// Repeats a call that a signal interrupted.
template <class Call>
auto retry(Call call) noexcept {
    auto value = call();
    while (value < 0 && errno == EINTR) value = call();
    return value;
}

/// Owns a descriptor in code that cannot use base/ (no libstdc++ here beyond its headers).
class fd {
public:
    fd() = default;
    explicit fd(int value) noexcept : value_(value) {}
    fd(fd&& other) noexcept : value_(other.release()) {}
    fd& operator=(fd&& other) noexcept {
        reset(other.release());
        return *this;
    }
    ~fd() { reset(); }
    int get() const noexcept { return value_; }
    explicit operator bool() const noexcept { return value_ >= 0; }
    int release() noexcept {
        const int value = value_;
        value_ = -1;
        return value;
    }
    void reset(int value = -1) noexcept {
        if (value_ >= 0) ::close(value_);
        value_ = value;
    }

private:
    int value_ = -1;
};

/// Zeroed memory straight from the kernel, given back whole; null when there is none.
void* pages_new(std::size_t size) noexcept;
void pages_free(void* pages, std::size_t size) noexcept;

/// Wall clock, ns since 1970; and the clock that deadlines use.
std::int64_t wall_ns() noexcept;
std::int64_t steady_ns() noexcept;

/// Whole small file into a buffer, NUL-terminated; the length, or -1.
ssize_t read_small(int dir, const char* path, char* buffer, std::size_t size) noexcept;
/// One write of a short text into an existing file; false with errno.
bool write_small(int dir, const char* path, const char* text, std::size_t size) noexcept;

} // namespace gantry::cri_native::supervisor::sys
