#include "plugins/cri-native/supervisor/sys.hpp"

#include <sys/mman.h>

#include <ctime>

#include "plugins/cri-native/launch/wire.hpp"

namespace gantry::cri_native::supervisor::sys {

namespace wire = launch::wire;

std::uint32_t features = 0;

namespace {

// A call with arguments that no kernel accepts: a kernel that has it says EINVAL, EBADF or EFAULT.
bool present(long value) noexcept { return value >= 0 || (errno != ENOSYS && errno != EPERM); }

std::int64_t clock_ns(clockid_t clock) noexcept {
    timespec now{};
    ::clock_gettime(clock, &now);
    return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

} // namespace

void probe() noexcept {
    features = 0;
    if (present(::syscall(SYS_clone3, nullptr, 0))) features |= wire::feature_clone3;
    if (present(open_tree(-1, "", AT_EMPTY_PATH)) && present(move_mount(-1, "", -1, "", 0)) &&
        present(::syscall(SYS_fsopen, nullptr, ~0u)) && present(fsconfig(-1, FSCONFIG_CMD_CREATE, nullptr, nullptr)) &&
        present(fsmount(-1, 0)))
        features |= wire::feature_mount_api;
    if (present(::syscall(SYS_mount_setattr, -1, "", AT_EMPTY_PATH, nullptr, 0)))
        features |= wire::feature_mount_setattr;
    if (present(::syscall(SYS_openat2, -1, "", nullptr, 0))) features |= wire::feature_openat2;
    if (present(close_range(~0u, ~0u, 0))) features |= wire::feature_close_range;
}

void* pages_new(std::size_t size) noexcept {
    void* pages = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return pages == MAP_FAILED ? nullptr : pages;
}

void pages_free(void* pages, std::size_t size) noexcept {
    if (pages) ::munmap(pages, size);
}

std::int64_t wall_ns() noexcept { return clock_ns(CLOCK_REALTIME); }
std::int64_t steady_ns() noexcept { return clock_ns(CLOCK_MONOTONIC); }

ssize_t read_small(int dir, const char* path, char* buffer, std::size_t size) noexcept {
    const fd file(::openat(dir, path, O_RDONLY | O_CLOEXEC));
    if (!file) return -1;
    std::size_t used = 0;
    while (used + 1 < size) {
        const ssize_t n = retry([&] { return ::read(file.get(), buffer + used, size - 1 - used); });
        if (n < 0) return -1;
        if (n == 0) break;
        used += static_cast<std::size_t>(n);
    }
    buffer[used] = '\0';
    return static_cast<ssize_t>(used);
}

bool write_small(int dir, const char* path, const char* text, std::size_t size) noexcept {
    const fd file(::openat(dir, path, O_WRONLY | O_CLOEXEC));
    if (!file) return false;
    const ssize_t n = retry([&] { return ::write(file.get(), text, size); });
    if (n >= 0 && static_cast<std::size_t>(n) != size) errno = EIO;
    return n == static_cast<ssize_t>(size);
}

} // namespace gantry::cri_native::supervisor::sys
