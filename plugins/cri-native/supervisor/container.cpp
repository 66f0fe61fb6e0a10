#include "plugins/cri-native/supervisor/container.hpp"

#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <new>

#include "plugins/cri-native/supervisor/cgroup.hpp"
#include "plugins/cri-native/supervisor/child.hpp"
#include "plugins/cri-native/supervisor/container_child.hpp"
#include "plugins/cri-native/supervisor/deadlines.hpp"
#include "plugins/cri-native/supervisor/process_record.hpp"
#include "plugins/cri-native/supervisor/sandbox.hpp"
#include "plugins/cri-native/supervisor/spawn.hpp"
#include "plugins/cri-native/supervisor/status_socket.hpp"

namespace gantry::cri_native::supervisor {

namespace {

constexpr std::int64_t drain_ns = 10'000'000'000;
// Exit codes of a process that never ran its program, as shells give them.
constexpr int code_not_found = 127;
constexpr int code_not_executable = 126;
constexpr int code_not_started = 128;

list<container> containers;

container* container_of_pid(pid_t pid) noexcept {
    for (container* c = containers.head; c; c = c->next)
        if (c->pid == pid && !c->ended) return c;
    return nullptr;
}

void destroy(container& c) noexcept {
    containers.remove(&c);
    close_outputs(c);
    end_attachments(c);
    c.status.close();
    sys::pages_free(c.kept, c.kept_size);
    c.~container();
    sys::pages_free(&c, sizeof c);
}

// The plan goes away once the child has it; what later operations need of it stays.
bool keep_cgroups(container& c, const plan_view& plan) noexcept {
    const auto wanted = [](const wire::records& r) {
        return r.is(wire::tag::cgroup_v1) || r.is(wire::tag::cgroup_v2) || r.is(wire::tag::cgroup_head);
    };
    std::size_t size = sizeof(wire::plan_header);
    for (auto r = plan.all(); r.next();)
        if (wanted(r)) size += r.bytes().size;
    c.kept = static_cast<char*>(sys::pages_new(size));
    if (!c.kept) return false;
    c.kept_size = size;
    std::size_t at = sizeof(wire::plan_header);
    for (auto r = plan.all(); r.next();) {
        if (!wanted(r)) continue;
        std::memcpy(c.kept + at, r.bytes().data, r.bytes().size);
        at += r.bytes().size;
    }
    c.cgroups = plan_view(c.kept, size);
    return true;
}

struct stdio_pair {
    sys::fd ours;
    sys::fd theirs;
};

bool make_pipe(stdio_pair& pair, bool we_read) noexcept {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return false;
    pair.ours.reset(ends[we_read ? 0 : 1]);
    pair.theirs.reset(ends[we_read ? 1 : 0]);
    make_nonblocking(pair.ours.get());
    return true;
}

void reply_child_failure(const requester& to, const child_report& report) noexcept {
    const auto as_text = [](const char* s) { return text{s, static_cast<std::uint32_t>(std::strlen(s))}; };
    reply_failure(to, static_cast<step>(report.step), report.err, as_text(report.object), as_text(report.detail));
}

// How an exit code would tell what a failed start was.
int code_of(const child_report& report) noexcept {
    if (report.step == static_cast<std::uint32_t>(step::exec_lookup) ||
        report.step == static_cast<std::uint32_t>(step::exec))
        return report.err == ENOENT ? code_not_found : code_not_executable;
    return code_not_started;
}

// The last user of a mount namespace unmounts what is in it, and waits for RCU to do so: 10 to 30 ms on a busy machine,
// before its parent may know that it ended. While we hold the namespace that is not the container's first process.
void hold_mounts(container& c) noexcept {
    line<40> path;
    path.add("/proc/").number(static_cast<unsigned>(c.pid)).add("/ns/mnt");
    c.mounts.reset(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
}

void set_up_done(container& c, int master) noexcept {
    c.state = container_state::created;
    hold_mounts(c);
    if (c.tty && master >= 0) {
        if (c.flags & wire::container_stdin) c.stdin_end.reset(::fcntl(master, F_DUPFD_CLOEXEC, 0));
        watch_outputs(c, master, -1);
    }
    message m(c.waiting, false);
    m.begin(wire::tag::request).u32(static_cast<std::uint32_t>(c.pid));
    m.end();
    send(m, c.waiting);
    c.waiting = {};
}

void set_up_failed(container& c, const child_report& report) noexcept {
    reply_child_failure(c.waiting, report);
    c.waiting = {};
    if (c.state == container_state::creating) {
        destroy(c); // its process is on its way out, reaped as a stranger
        return;
    }
    c.exit_code = code_of(report);
    c.status.close(); // its end is noted when it is reaped
}

// False when there is nothing more to read for now; the container may be gone then.
bool read_status(container& c) noexcept {
    child_report report;
    int master = -1;
    switch (receive_report(c.status.fd(), report, master)) {
    case report_result::nothing: return false;
    case report_result::message:
        if (report.what == child_report::ready) {
            set_up_done(c, master);
            return true;
        }
        set_up_failed(c, report);
        return false;
    case report_result::end: break;
    }
    c.status.close();
    if (c.state == container_state::starting) { // execve took the child's end
        c.state = container_state::running;
        reply_done(c.waiting);
        c.waiting = {};
    } // else it was killed while being set up or at its gate: reaping tells
    return false;
}

void status_ready(void* self, std::uint32_t) noexcept { read_status(*static_cast<container*>(self)); }

void kill_container_cgroups(const container& c) noexcept {
    wire::fields head = c.cgroups.first(wire::tag::cgroup_head);
    head.u32();
    const text freezer = head.text();
    const text v2 = c.cgroups.first(wire::tag::cgroup_v2).text();
    const text v1 = c.cgroups.first(wire::tag::cgroup_v1).text();
    const text dir = !v2.empty() ? v2 : !freezer.empty() ? freezer : v1;
    if (!dir.empty()) kill_cgroup(dir);
}

void note_end(container& c, int code, int signal) noexcept {
    c.ended = true;
    c.finished_ns = sys::wall_ns();
    c.exit_signal = signal;
    const bool never_ran = c.state == container_state::starting && c.exit_code != 0; // its start failed and was told
    if (!never_ran) c.exit_code = signal != 0 ? 128 + signal : code;
    c.oom_killed = signal == SIGKILL && !c.killed && oom_kills(c.oom_file()) > c.oom_before;
    if (c.pid_ns != pid_mode::container) kill_container_cgroups(c);
    if (c.state == container_state::creating) {
        line<64> how;
        if (c.oom_killed)
            how.add("its memory limit is too low");
        else
            how.add("killed by signal ").number(static_cast<unsigned>(signal));
        reply_failure(c.waiting, step::died, c.oom_killed ? ENOMEM : ECHILD, c.id, how);
        destroy(c);
        return;
    }
    if (c.state == container_state::starting && !never_ran) reply_done(c.waiting); // it ran, however shortly
    c.status.close();
    c.state = container_state::exited;
    c.stdin_end.reset();
    c.drain_deadline = sys::steady_ns() + drain_ns;
    drain_outputs(c);
    announce_exit_when_drained(c);
}

} // namespace

text container::oom_file() const noexcept {
    wire::fields head = cgroups.first(wire::tag::cgroup_head);
    head.u32();
    head.text();
    return head.text();
}

container* find_container(text id) noexcept {
    for (container* c = containers.head; c; c = c->next)
        if (same(c->id, id)) return c;
    return nullptr;
}

void create_container(request& r) noexcept {
    const char* detail = "";
    plan_view plan;
    if (r.fd_count != 1) return reply_failure(r.from, step::protocol, EINVAL);
    if (!plan.map(r.fds[0].get(), wire::plan_kind::container, &detail))
        return reply_failure(r.from, step::plan, errno, text{detail, static_cast<std::uint32_t>(std::strlen(detail))});
    wire::fields head = plan.first(wire::tag::container_head);
    const text id = head.text();
    const text log_path = head.text();
    const bool tty = process_record(plan).tty();
    if (find_container(id)) {
        reply_failure(r.from, step::state, EEXIST, id);
        return plan.unmap();
    }
    void* pages = sys::pages_new(sizeof(container));
    if (!pages) {
        reply_failure(r.from, step::memory, ENOMEM);
        return plan.unmap();
    }
    auto& c = *new (pages) container;
    containers.push(&c);
    const auto refuse = [&](step at, text object) {
        reply_failure(r.from, at, errno, object);
        destroy(c);
        plan.unmap();
    };
    c.id.add(id);
    c.log_path.add(log_path);
    c.pid_ns = static_cast<pid_mode>(head.u32());
    c.flags = head.u32();
    c.tty = tty;
    c.waiting = r.from;
    c.created_ns = sys::wall_ns();
    if (!keep_cgroups(c, plan)) return refuse(step::memory, id);
    if (c.pid_ns > pid_mode::host || (c.pid_ns == pid_mode::pod && sandbox().pod_init() < 0)) {
        errno = EINVAL; // never the host's namespace instead
        return refuse(step::pod_init, id);
    }
    c.oom_before = oom_kills(c.oom_file());
    if (!log_path.empty() && !c.log.open(c.log_path.c_str())) return refuse(step::log, log_path);

    stdio_pair in;
    stdio_pair out;
    stdio_pair err;
    if (!tty &&
        ((c.flags & wire::container_stdin && !make_pipe(in, false)) || !make_pipe(out, true) || !make_pipe(err, true)))
        return refuse(step::pipe, id);
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return refuse(step::pipe, id);
    c.status.assign(ends[0], status_ready, &c);
    sys::fd child_end(ends[1]);

    const text v2 = c.cgroups.first(wire::tag::cgroup_v2).text();
    const sys::fd cgroup(v2.empty() ? -1 : ::open(v2.data, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!v2.empty() && !cgroup) return refuse(step::cgroup_join, v2);
    clone_request how{.namespaces = CLONE_NEWNS, .cgroup = cgroup.get()};
    if (c.pid_ns == pid_mode::container) how.namespaces |= CLONE_NEWPID;
    if (c.pid_ns == pid_mode::pod) how.pid_namespace_of = sandbox().pod_init();
    const clone_result made = clone_child(how);
    if (made.pid == 0) {
        child self{.status = child_end.get(), .plan = plan, .run_dir = sandbox().run_dir()};
        run_container(self, {in.theirs.get(), out.theirs.get(), err.theirs.get()}, made.in_cgroup);
    }
    if (made.pid < 0) return refuse(step::clone, id);
    c.pid = made.pid;
    c.pidfd.reset(made.pidfd);
    c.status.arm(EPOLLIN);
    if (!tty) {
        c.stdin_end = static_cast<sys::fd&&>(in.ours);
        watch_outputs(c, out.ours.release(), err.ours.release());
    }
    plan.unmap();
}

void start_container(container& c, const requester& from) noexcept {
    if (c.state != container_state::created) return reply_failure(from, step::state, EINVAL, c.id);
    const char open = 1;
    if (::send(c.status.fd(), &open, sizeof open, MSG_NOSIGNAL) != 1)
        return reply_failure(from, step::died, errno, c.id);
    c.state = container_state::starting;
    c.started_ns = sys::wall_ns();
    c.waiting = from;
}

void signal_container(container& c, int signal) noexcept {
    if (c.ended) return;
    c.killed = c.killed || signal == SIGKILL;
    sys::pidfd_send_signal(c.pidfd.get(), signal);
    // Without a PID namespace of its own the first process takes nobody along.
    if (signal == SIGKILL && c.pid_ns != pid_mode::container) kill_container_cgroups(c);
}

bool container_ended(pid_t pid, int code, int signal) noexcept {
    container* found = container_of_pid(pid);
    if (!found) return false;
    // What it reported before it died comes first; that may be all there is to say of it.
    while (found->status.open() && read_status(*found)) {
    }
    found = container_of_pid(pid);
    if (found) note_end(*found, code, signal);
    return true;
}

void announce_exit_when_drained(container& c) noexcept {
    if (c.announced || !c.ended || c.out.open() || c.err.open()) return;
    c.announced = true;
    c.drain_deadline = 0;
    write_exit_record(c);
    message m(wire::op::exited, 0, 0);
    append_container(m, c);
    send_event(m);
    c.log.close();
    close_aside(c.mounts.release());
}

void forget_container(container& c) noexcept {
    remove_exit_record(c);
    destroy(c);
}

void append_container(message& m, const container& c) noexcept {
    // Exited is what is on disk: until its output is in the log it counts as running.
    const container_state state =
        c.state == container_state::exited && !c.announced ? container_state::running : c.state;
    m.begin(wire::tag::container)
        .text(c.id.c_str(), c.id.size())
        .u32(static_cast<std::uint32_t>(state))
        .u32(c.announced ? 0u : static_cast<std::uint32_t>(c.pid))
        .u64(static_cast<std::uint64_t>(c.created_ns))
        .u64(static_cast<std::uint64_t>(c.started_ns))
        .u64(static_cast<std::uint64_t>(c.finished_ns))
        .u32(static_cast<std::uint32_t>(c.exit_code))
        .u32(static_cast<std::uint32_t>(c.exit_signal))
        .u32(c.oom_killed ? 1 : 0)
        .u64(c.log.dropped());
    m.end();
}

void list_containers(const requester& to) noexcept {
    constexpr std::size_t room = 512;
    container* at = containers.head;
    do {
        message m(to, false);
        for (; at && m.size() + room < wire::max_message; at = at->next) append_container(m, *at);
        if (at) m.set_more();
        send(m, to);
    } while (at);
}

bool any_alive() noexcept {
    for (container* c = containers.head; c; c = c->next)
        if (!c->ended) return true;
    return false;
}

void kill_all() noexcept {
    for (container* c = containers.head; c; c = c->next) signal_container(*c, SIGKILL);
}

std::int64_t containers_deadline() noexcept {
    std::int64_t due = 0;
    for (container* c = containers.head; c; c = c->next)
        due = earlier(earlier(due, c->drain_deadline), attachments_deadline(*c));
    return due;
}

void expire_containers(std::int64_t now) noexcept {
    for (container* c = containers.head; c; c = c->next) {
        expire_attachments(*c, now);
        if (c->drain_deadline == 0 || c->drain_deadline > now) continue;
        end_attachments(*c); // a client that takes nothing must not cost the log the rest
        drain_outputs(*c);
        close_outputs(*c);
        announce_exit_when_drained(*c);
    }
}

} // namespace gantry::cri_native::supervisor
