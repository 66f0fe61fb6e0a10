#include "plugins/cri-native/supervisor/spawn.hpp"

#include <signal.h>

#include "plugins/cri-native/launch/wire.hpp"
#include "plugins/cri-native/supervisor/sys.hpp"

namespace gantry::cri_native::supervisor {

namespace wire = launch::wire;

namespace {

sys::fd own_pid_namespace;

// The cgroup has controllers for its children, or the kernel is too old to be born elsewhere (3.2 step 2).
bool cgroup_refused(int err) noexcept {
    return err == EBUSY || err == EOPNOTSUPP || err == EINVAL || err == EACCES || err == EPERM || err == ENODEV;
}

pid_t by_clone3(const clone_request& request, bool into_cgroup, int* pidfd) noexcept {
    clone_args args{};
    args.flags = request.namespaces | CLONE_PIDFD | (into_cgroup ? CLONE_INTO_CGROUP : 0);
    args.pidfd = reinterpret_cast<std::uint64_t>(pidfd);
    args.exit_signal = SIGCHLD;
    args.cgroup = into_cgroup ? static_cast<std::uint64_t>(request.cgroup) : 0;
    return sys::clone3(&args);
}

pid_t by_clone(const clone_request& request, int* pidfd) noexcept {
    return static_cast<pid_t>(
        ::syscall(SYS_clone, request.namespaces | CLONE_PIDFD | SIGCHLD, nullptr, pidfd, nullptr, nullptr));
}

} // namespace

bool remember_pid_namespace() noexcept {
    own_pid_namespace.reset(::open("/proc/self/ns/pid", O_RDONLY | O_CLOEXEC));
    return static_cast<bool>(own_pid_namespace);
}

clone_result clone_child(const clone_request& request) noexcept {
    clone_result result;
    if (request.pid_namespace_of >= 0 && ::setns(request.pid_namespace_of, CLONE_NEWPID) != 0) return result;
    if (sys::has(wire::feature_clone3)) {
        result.in_cgroup = request.cgroup >= 0;
        result.pid = by_clone3(request, result.in_cgroup, &result.pidfd);
        if (result.pid < 0 && result.in_cgroup && cgroup_refused(errno)) {
            result.in_cgroup = false;
            result.pid = by_clone3(request, false, &result.pidfd);
        }
    } else {
        result.pid = by_clone(request, &result.pidfd);
    }
    if (result.pid != 0 && request.pid_namespace_of >= 0) {
        const int err = errno;
        if (::setns(own_pid_namespace.get(), CLONE_NEWPID) != 0)
            ::_exit(1); // else every later child would be born there
        errno = err;
    }
    return result;
}

void close_aside(int fd) noexcept {
    if (fd < 0) return;
    if (clone_child({}).pid == 0) {
        // Without the others nothing else seems open while this lasts: not our socket, no container's stream.
        sys::close_range(0, static_cast<unsigned>(fd) - 1, 0);
        sys::close_range(static_cast<unsigned>(fd) + 1, ~0u, 0);
        ::_exit(0);
    }
    ::close(fd);
}

} // namespace gantry::cri_native::supervisor
