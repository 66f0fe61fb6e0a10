#include "plugins/cri-native/supervisor/container_child.hpp"

#include <sys/stat.h>

#include "plugins/cri-native/supervisor/cgroup.hpp"
#include "plugins/cri-native/supervisor/console.hpp"
#include "plugins/cri-native/supervisor/devices.hpp"
#include "plugins/cri-native/supervisor/filesystem.hpp"
#include "plugins/cri-native/supervisor/masks.hpp"
#include "plugins/cri-native/supervisor/mounts.hpp"
#include "plugins/cri-native/supervisor/process.hpp"
#include "plugins/cri-native/supervisor/rootfs.hpp"
#include "plugins/cri-native/supervisor/target.hpp"

namespace gantry::cri_native::supervisor {

namespace {

void open_proc(child& c) noexcept {
    c.proc = open_trusted_proc();
    if (c.proc < 0) c.fail(step::proc_write, errno, "/proc");
}

// Pipes belong to the process's user, so that it may open /dev/stdout again; where that fails it only cannot. Never
// another kind of file: the host's /dev/null would change hands.
void give_to(int end, uid_t uid) noexcept {
    struct stat st {};
    if (::fstat(end, &st) == 0 && (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode)))
        static_cast<void>(!::fchown(end, uid, static_cast<gid_t>(-1)));
}

void adopt_pipes(const child& c, const stdio_ends& io, uid_t uid) noexcept {
    const int ends[] = {io.in, io.out, io.err};
    const sys::fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
    if (!null) c.fail(step::stdio, errno, "/dev/null");
    for (int i = 0; i < 3; ++i) {
        if (ends[i] >= 0) give_to(ends[i], uid);
        if (::dup2(ends[i] >= 0 ? ends[i] : null.get(), i) < 0) c.fail(step::stdio, errno, "dup2");
    }
}

void join_container_cgroups(const child& c, bool in_v2) noexcept {
    c.plan.each(wire::tag::cgroup_v1, [&](wire::fields f) {
        const text dir = f.text();
        if (!join_cgroup_v1(dir)) c.fail(step::cgroup_join, errno, dir);
    });
    const text v2 = c.plan.first(wire::tag::cgroup_v2).text();
    if (!v2.empty() && !in_v2 && !join_cgroup_v2(v2)) c.fail(step::cgroup_join, errno, v2);
    // The new namespace is rooted where the process is now, hence not by clone3, which would root it at the
    // supervisor's.
    if (c.plan.first(wire::tag::cgroup_head).u32() == 0 && ::unshare(CLONE_NEWCGROUP) != 0)
        c.fail(step::cgroup_namespace, errno);
}

} // namespace

void run_container(child& c, const stdio_ends& io, bool in_v2) noexcept {
    ::umask(0);
    const process_record process(c.plan);
    // Steps 1 and 2: accounted to the container from here on. (Cgroup and limits made by the plugin; namespaces by
    // clone.)
    join_container_cgroups(c, in_v2);
    open_proc(c);
    prepare_process(c, process);
    mount_set mounts(c);
    mounts.take_sources();
    // Step 3: nothing we mount reaches the host; what the host mounts later reaches only the binds that ask for it.
    if (::mount(nullptr, "/", nullptr, MS_SLAVE | MS_REC, nullptr) != 0) c.fail(step::propagation, errno, "/");
    // Step 4.
    const int root = make_root(c);
    // Steps 5, 6, 7 (proc), 8 (dev).
    mounts.attach(root);
    make_devices(c, root);
    // Step 10.
    terminal tty;
    if (process.tty()) {
        if (mounts.devpts() < 0) c.fail(step::console, ENODEV, "the plan has no devpts");
        tty = open_terminal(c, mounts.devpts());
        bind_console(c, root, tty.slave);
    }
    const sys::fd made(
        open_target(root, process.cwd, {.if_missing = missing::make_directory})); // may be absent: step 12 tells
    mounts.seal();
    // Step 9.
    mask_paths(c, root);
    make_paths_readonly(c, root);
    ::setsid();
    if (process.tty())
        adopt_terminal(c, tty.slave);
    else
        adopt_pipes(c, io, process.uid);
    // Step 11.
    enter_root(c, root);
    c.report_ready(tty.master);
    // Step 12, first half: nothing of the host stays open. The second half and steps 13 and 14 follow the gate.
    close_descriptors(c);
    // Step 15.
    c.wait_at_gate();
    become_process(c, process);
}

void run_exec(child& c, const exec_target& target, const stdio_ends& io) noexcept {
    ::umask(0);
    const process_record process(c.plan);
    wire::fields head = target.cgroups->first(wire::tag::cgroup_head);
    const bool own_cgroup_namespace = head.u32() == 0;
    const text freezer = head.text();
    target.cgroups->each(wire::tag::cgroup_v1, [&](wire::fields f) {
        const text dir = f.text();
        const text to = !target.leaf.empty() && !target.leaf_is_v2 && same(dir, freezer) ? target.leaf : dir;
        if (!join_cgroup_v1(to)) c.fail(step::cgroup_join, errno, to);
    });
    if (!target.in_v2) {
        const text v2 = target.leaf_is_v2 ? target.leaf : target.cgroups->first(wire::tag::cgroup_v2).text();
        if (!v2.empty() && !join_cgroup_v2(v2)) c.fail(step::cgroup_join, errno, v2);
    }
    open_proc(c);
    prepare_process(c, process);
    if (::setns(target.pidfd, CLONE_NEWNS | (own_cgroup_namespace ? CLONE_NEWCGROUP : 0)) != 0)
        c.fail(step::join, errno);
    ::setsid();
    terminal tty;
    if (process.tty()) {
        const sys::fd devpts(::open("/dev/pts", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
        if (!devpts) c.fail(step::console, errno, "/dev/pts");
        tty = open_terminal(c, devpts.get());
        adopt_terminal(c, tty.slave);
    } else {
        adopt_pipes(c, io, process.uid);
    }
    c.report_ready(tty.master);
    close_descriptors(c);
    become_process(c, process);
}

} // namespace gantry::cri_native::supervisor
