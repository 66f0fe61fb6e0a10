#include "plugins/cri-native/supervisor/sandbox.hpp"

#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <initializer_list>

#include "plugins/cri-native/supervisor/cgroup.hpp"
#include "plugins/cri-native/supervisor/child.hpp"
#include "plugins/cri-native/supervisor/plan_view.hpp"
#include "plugins/cri-native/supervisor/pod_init.hpp"
#include "plugins/cri-native/supervisor/spawn.hpp"

namespace gantry::cri_native::supervisor {

namespace {

sandbox_state the_sandbox;

bool bring_loopback_up() noexcept {
    const sys::fd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (!socket) return false;
    ifreq request{};
    std::memcpy(request.ifr_name, "lo", 3);
    request.ifr_flags = IFF_UP | IFF_RUNNING;
    return ::ioctl(socket.get(), SIOCSIFFLAGS, &request) == 0;
}

} // namespace

sandbox_state& sandbox() noexcept { return the_sandbox; }

bool sandbox_state::fail(step at, text object, const char* detail) noexcept {
    err_ = errno;
    step_ = at;
    object_.add(object);
    detail_ = detail;
    return false;
}

void sandbox_state::reply_failure_to(const requester& to) const noexcept {
    reply_failure(to, step_, err_, object_, text{detail_, static_cast<std::uint32_t>(std::strlen(detail_))});
}

void sandbox_state::set_up(int plan_fd, int run_dir_fd, bool in_cgroup_v2) noexcept {
    run_dir_fd_ = run_dir_fd;
    execute(plan_fd, in_cgroup_v2);
}

bool sandbox_state::execute(int plan_fd, bool in_cgroup_v2) noexcept {
    plan_view plan;
    const char* detail = "";
    if (!plan.map(plan_fd, wire::plan_kind::sandbox, &detail)) return fail(step::plan, {}, detail);
    wire::fields pod = plan.first(wire::tag::pod);
    pod.text(); // id
    run_dir_.add(pod.text());
    const std::uint32_t flags = pod.u32();
    const text hostname = pod.text();
    const text domainname = pod.text();
    const std::uint64_t shm_bytes = pod.u64();
    line<16> score;
    score.signed_number(pod.i32());

    // Lowering the score needs CAP_SYS_RESOURCE; without it the supervisor keeps what it inherited.
    sys::write_small(AT_FDCWD, "/proc/self/oom_score_adj", score.c_str(), score.size());
    bool joined = true;
    plan.each(wire::tag::own_cgroup_v1, [&](wire::fields f) {
        const text dir = f.text();
        if (joined && !join_cgroup_v1(dir)) joined = fail(step::cgroup_join, dir);
    });
    if (!joined) return false;
    const text v2 = plan.first(wire::tag::own_cgroup_v2).text();
    if (!v2.empty() && !in_cgroup_v2 && !join_cgroup_v2(v2)) return fail(step::cgroup_join, v2);
    for (const char* name : {"ns", "exits", "rootfs"})
        if (::mkdirat(run_dir_fd_, name, 0700) != 0 && errno != EEXIST) return fail(step::pin, run_dir_, name);
    if (!own_namespaces(flags)) return false;
    if ((flags & wire::pod_new_uts) != 0) {
        if (!hostname.empty() && ::sethostname(hostname.data, hostname.size) != 0)
            return fail(step::hostname, hostname);
        if (!domainname.empty() && ::setdomainname(domainname.data, domainname.size) != 0)
            return fail(step::hostname, domainname);
    }
    if (!apply_sysctls(plan)) return false;
    if (shm_bytes != 0 && !mount_shm(shm_bytes)) return false;
    if ((flags & wire::pod_shared_pid) != 0 && !start_pod_init()) return false;
    plan.unmap();
    return true;
}

bool sandbox_state::own_namespaces(std::uint32_t flags) noexcept {
    const int wanted = (flags & wire::pod_new_net ? CLONE_NEWNET : 0) | (flags & wire::pod_new_ipc ? CLONE_NEWIPC : 0) |
                       (flags & wire::pod_new_uts ? CLONE_NEWUTS : 0);
    if (wanted != 0 && ::unshare(wanted) != 0) return fail(step::namespaces);
    if ((flags & wire::pod_new_net) == 0) return true;
    if (!bring_loopback_up()) return fail(step::loopback);
    return pin_network();
}

// Only the network namespace is pinned: network DEL needs it after we died; uts and ipc serve nobody then, and every
// mount of the host makes every later clone of its mount namespace dearer.
bool sandbox_state::pin_network() noexcept {
    path_line path;
    path.add(run_dir_).add("/ns/net");
    const sys::fd file(::open(path.c_str(), O_RDONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!file || ::mount("/proc/self/ns/net", path.c_str(), nullptr, MS_BIND, nullptr) != 0 ||
        ::mount(nullptr, path.c_str(), nullptr, MS_PRIVATE, nullptr) != 0)
        return fail(step::pin, path);
    return true;
}

bool sandbox_state::apply_sysctls(const plan_view& plan) noexcept {
    const sys::fd proc(open_trusted_proc());
    if (!proc) return fail(step::sysctl, text{"/proc", 5});
    bool good = true;
    plan.each(wire::tag::sysctl, [&](wire::fields f) {
        const text name = f.text();
        const text value = f.text();
        path_line path;
        path.add("sys/").add(name);
        if (good && !write_proc(proc.get(), path.c_str(), value.data, value.size))
            good = fail(step::sysctl, name, value.data);
    });
    return good;
}

bool sandbox_state::mount_shm(std::uint64_t bytes) noexcept {
    path_line path;
    path.add(run_dir_).add("/shm");
    line<64> options;
    options.add("mode=1777,size=").number(bytes);
    if ((::mkdirat(run_dir_fd_, "shm", 0700) != 0 && errno != EEXIST) ||
        ::mount("shm", path.c_str(), "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, options.c_str()) != 0 ||
        ::mount(nullptr, path.c_str(), nullptr, MS_PRIVATE, nullptr) != 0)
        return fail(step::shm, path);
    return true;
}

bool sandbox_state::start_pod_init() noexcept {
    const clone_result made = clone_child({.namespaces = CLONE_NEWPID | CLONE_NEWNS});
    if (made.pid == 0) run_pod_init(run_dir_);
    if (made.pid < 0) return fail(step::pod_init);
    pod_init_.reset(made.pidfd);
    pod_init_pid_ = made.pid;
    return true;
}

} // namespace gantry::cri_native::supervisor
