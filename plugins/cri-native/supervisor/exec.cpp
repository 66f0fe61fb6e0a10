#include "plugins/cri-native/supervisor/exec.hpp"

#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <initializer_list>
#include <new>

#include "plugins/cri-native/supervisor/capture.hpp"
#include "plugins/cri-native/supervisor/cgroup.hpp"
#include "plugins/cri-native/supervisor/container.hpp"
#include "plugins/cri-native/supervisor/container_child.hpp"
#include "plugins/cri-native/supervisor/deadlines.hpp"
#include "plugins/cri-native/supervisor/process_record.hpp"
#include "plugins/cri-native/supervisor/sandbox.hpp"
#include "plugins/cri-native/supervisor/spawn.hpp"
#include "plugins/cri-native/supervisor/status_socket.hpp"

namespace gantry::cri_native::supervisor {

namespace {

constexpr std::int64_t drain_ns = 10'000'000'000;
constexpr std::int64_t sweep_ns = 20'000'000; // how soon to look again at a leaf that is not empty yet
constexpr int max_sweeps = 500;               // of a killed tree's leaf
constexpr int max_quiet_sweeps = 50;          // of one that was not killed
constexpr std::size_t max_inline = 48u << 10;
constexpr std::size_t max_capture = 64u << 20;

struct exec {
    exec* previous = nullptr;
    exec* next = nullptr;
    std::uint32_t handle = 0;
    requester client;
    pid_t pid = 0;
    sys::fd pidfd;
    watcher status;
    bool captured = false;
    bool tty = false;
    bool ended = false;
    bool answered = false;
    bool timed_out = false;
    int exit_code = 0;
    std::int64_t timeout_at = 0;
    std::int64_t drain_deadline = 0;
    std::int64_t sweep_at = 0; ///< answered, killed, and its leaf still has processes
    int sweeps = 0;
    path_line leaf;
    capture out;
    capture err;
    watcher master; ///< tty: read here
    sink to_client;
    pump from_client;
    winsize size{};    ///< tty: as last asked for, which may be before the terminal is there
    sys::fd client_in; ///< tty: until the terminal is there
    sys::fd client_out;
};

list<exec> execs;
std::uint32_t leaf_count = 0;

void destroy(exec& e) noexcept {
    execs.remove(&e);
    e.status.close();
    e.master.close();
    e.to_client.close();
    e.from_client.close();
    e.out.stop();
    e.err.stop();
    e.~exec();
    sys::pages_free(&e, sizeof e);
}

void kill_tree(exec& e) noexcept {
    if (e.leaf.size() != 0) {
        kill_cgroup(e.leaf);
    } else if (!e.ended) {
        ::kill(-e.pid, SIGKILL); // no cgroup of its own: the session's first process group at least
        ::kill(e.pid, SIGKILL);
    }
}

// Gone when its leaf is. What a command left running in the background on purpose keeps the leaf until the container
// ends.
void retire(exec& e) noexcept {
    if (e.leaf.size() == 0 || ::rmdir(e.leaf.c_str()) == 0 || errno == ENOENT ||
        ++e.sweeps > (e.timed_out ? max_sweeps : max_quiet_sweeps))
        return destroy(e);
    if (e.timed_out) kill_tree(e);
    e.sweep_at = sys::steady_ns() + sweep_ns;
}

void send_result(exec& e) noexcept {
    const std::size_t out = e.out.size();
    const std::size_t err = e.err.size();
    const bool fits = out + err <= max_inline;
    sys::fd memory;
    if (!fits) {
        memory.reset(::memfd_create("exec-output", MFD_CLOEXEC));
        const char* const parts[] = {e.out.data(), e.err.data()};
        const std::size_t sizes[] = {out, err};
        for (int i = 0; i < 2; ++i)
            for (std::size_t at = 0; at < sizes[i];) {
                const ssize_t n = sys::retry([&] { return ::write(memory.get(), parts[i] + at, sizes[i] - at); });
                if (n <= 0) return reply_failure(e.client, step::memory, errno);
                at += static_cast<std::size_t>(n);
            }
    }
    message m(e.client, false);
    m.begin(wire::tag::exec_exit)
        .u32(static_cast<std::uint32_t>(e.exit_code))
        .u32(e.timed_out ? 1 : 0)
        .u32(static_cast<std::uint32_t>(out))
        .u32(static_cast<std::uint32_t>(err))
        .u32(fits ? 1 : 0)
        .text(e.out.data(), fits ? out : 0)
        .text(e.err.data(), fits ? err : 0);
    m.end();
    send(m, e.client, memory.get());
}

void answer_when_done(exec& e) noexcept {
    const bool streams_open = e.out.is_open() || e.err.is_open() || e.master.open() || e.to_client.backlog();
    if (!e.ended || e.answered || (streams_open && e.drain_deadline != 0)) return;
    e.answered = true;
    e.drain_deadline = e.timeout_at = 0;
    send_result(e);
    retire(e);
}

void capture_ended(void* self) noexcept { answer_when_done(*static_cast<exec*>(self)); }

// The client is gone: hang the terminal up, as closing a window does.
void client_changed(void* self) noexcept {
    auto& e = *static_cast<exec*>(self);
    if (!e.to_client.is_open()) {
        e.from_client.close();
        e.master.close();
    } else if (e.master.open() && !e.to_client.backlog()) {
        e.master.arm(EPOLLIN);
    }
    answer_when_done(e);
}

void client_input_ended(void*, bool) noexcept {} // a terminal has no end of input of its own

void master_ready(void* self, std::uint32_t) noexcept {
    auto& e = *static_cast<exec*>(self);
    char bytes[8192];
    const ssize_t n = sys::retry([&] { return ::read(e.master.fd(), bytes, sizeof bytes); });
    if (n < 0 && errno == EAGAIN) return;
    if (n <= 0) { // EIO: nobody has the terminal any more
        e.from_client.close();
        e.master.close();
        return answer_when_done(e);
    }
    e.to_client.put(bytes, static_cast<std::size_t>(n));
    if (!e.to_client.is_open()) return client_changed(&e);
    if (e.to_client.backlog()) e.master.disarm();
}

void terminal_came(exec& e, int master) noexcept {
    make_nonblocking(master);
    if (e.size.ws_col != 0) ::ioctl(master, TIOCSWINSZ, &e.size);
    e.master.assign(master, master_ready, &e);
    e.master.arm(EPOLLIN);
    if (e.client_out)
        e.to_client.open(e.client_out.release(), client_changed, &e);
    else
        e.to_client.open(::open("/dev/null", O_WRONLY | O_CLOEXEC), client_changed, &e);
    if (!e.client_in) return;
    const int to = ::fcntl(master, F_DUPFD_CLOEXEC, 0);
    if (to >= 0) e.from_client.open(e.client_in.release(), to, client_input_ended, &e);
}

// False when there is nothing more to read for now.
bool read_status(exec& e) noexcept {
    child_report report;
    int master = -1;
    switch (receive_report(e.status.fd(), report, master)) {
    case report_result::nothing: return false;
    case report_result::message: break;
    case report_result::end: e.status.close(); return false; // execve took the child's end
    }
    if (report.what == child_report::ready) {
        if (master >= 0) terminal_came(e, master);
        return true;
    }
    const auto as_text = [](const char* s) { return text{s, static_cast<std::uint32_t>(std::strlen(s))}; };
    reply_failure(e.client, static_cast<step>(report.step), report.err, as_text(report.object), as_text(report.detail));
    e.answered = true;
    e.timeout_at = 0;
    e.status.close();
    return false;
}

void status_ready(void* self, std::uint32_t) noexcept { read_status(*static_cast<exec*>(self)); }

exec* exec_of_pid(pid_t pid) noexcept {
    for (exec* e = execs.head; e; e = e->next)
        if (e->pid == pid && !e->ended) return e;
    return nullptr;
}

exec* exec_of_handle(std::uint32_t handle) noexcept {
    for (exec* e = execs.head; e; e = e->next)
        if (e->handle == handle && !e->ended) return e;
    return nullptr;
}

// A cgroup of the command's own: the one thing that still names its whole tree after its processes daemonised.
void make_leaf(exec& e, const container& c, bool& is_v2) noexcept {
    wire::fields head = c.cgroups.first(wire::tag::cgroup_head);
    head.u32();
    const text freezer = head.text();
    const text v2 = c.cgroups.first(wire::tag::cgroup_v2).text();
    is_v2 = !v2.empty();
    const text parent = is_v2 ? v2 : freezer;
    if (parent.empty()) return;
    e.leaf.add(parent).add("/exec-").number(++leaf_count);
    if (e.leaf.truncated() || ::mkdir(e.leaf.c_str(), 0755) != 0) e.leaf.cut(0);
}

bool open_pipe(capture& to, std::size_t limit, exec& e, sys::fd& theirs) noexcept {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return false;
    theirs.reset(ends[1]);
    make_nonblocking(ends[0]);
    return to.open(ends[0], limit, capture_ended, &e);
}

} // namespace

void start_exec(container& c, request& r, std::uint32_t handle, std::uint32_t flags) noexcept {
    if (c.state != container_state::running) return reply_failure(r.from, step::state, ESRCH, c.id);
    const char* detail = "";
    plan_view plan;
    std::size_t wanted = 1;
    for (const auto bit : {wire::exec_stdin, wire::exec_stdout, wire::exec_stderr}) wanted += (flags & bit) != 0;
    if (r.fd_count != wanted) return reply_failure(r.from, step::protocol, EINVAL, c.id);
    if (!plan.map(r.fds[0].get(), wire::plan_kind::exec, &detail))
        return reply_failure(r.from, step::plan, errno, c.id,
                             text{detail, static_cast<std::uint32_t>(std::strlen(detail))});
    wire::fields head = plan.first(wire::tag::exec_head);
    const std::uint64_t timeout = head.u64();
    const std::uint64_t asked = head.u64();
    const std::size_t limit = asked < max_capture ? asked : max_capture;
    void* pages = sys::pages_new(sizeof(exec));
    if (!pages) {
        plan.unmap();
        return reply_failure(r.from, step::memory, ENOMEM, c.id);
    }
    auto& e = *new (pages) exec;
    execs.push(&e);
    const auto refuse = [&](step at, int err) {
        reply_failure(r.from, at, err, c.id);
        if (e.leaf.size() != 0) ::rmdir(e.leaf.c_str());
        destroy(e);
        plan.unmap();
    };
    e.handle = handle;
    e.client = r.from;
    e.captured = (flags & wire::exec_captured) != 0;
    e.tty = process_record(plan).tty();

    exec_target target;
    target.pidfd = c.pidfd.get();
    target.cgroups = &c.cgroups;
    wire::fields cgroup_head = c.cgroups.first(wire::tag::cgroup_head);
    cgroup_head.u32();
    const text freezer = cgroup_head.text();
    const text v2 = c.cgroups.first(wire::tag::cgroup_v2).text();
    if ((!freezer.empty() && is_frozen(freezer)) || (!v2.empty() && is_frozen(v2))) return refuse(step::frozen, EBUSY);
    make_leaf(e, c, target.leaf_is_v2);
    target.leaf = e.leaf;

    std::size_t next = 1;
    sys::fd in = flags & wire::exec_stdin ? static_cast<sys::fd&&>(r.fds[next++]) : sys::fd();
    sys::fd out = flags & wire::exec_stdout ? static_cast<sys::fd&&>(r.fds[next++]) : sys::fd();
    sys::fd err = flags & wire::exec_stderr ? static_cast<sys::fd&&>(r.fds[next++]) : sys::fd();
    if (e.captured && (!open_pipe(e.out, limit, e, out) || !open_pipe(e.err, limit, e, err)))
        return refuse(step::pipe, errno);
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return refuse(step::pipe, errno);
    e.status.assign(ends[0], status_ready, &e);
    const sys::fd child_end(ends[1]);

    const char* born_in = target.leaf_is_v2 ? (e.leaf.size() != 0 ? e.leaf.c_str() : v2.data) : nullptr;
    const sys::fd cgroup(born_in ? ::open(born_in, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1);
    clone_request how{.cgroup = cgroup.get()};
    if (c.pid_ns == pid_mode::container) how.pid_namespace_of = c.pidfd.get();
    if (c.pid_ns == pid_mode::pod) how.pid_namespace_of = sandbox().pod_init();
    const clone_result made = clone_child(how);
    if (made.pid == 0) {
        child self{.status = child_end.get(), .plan = plan, .run_dir = sandbox().run_dir()};
        target.in_v2 = made.in_cgroup;
        run_exec(self, target, {in.get(), out.get(), err.get()});
    }
    if (made.pid < 0) return refuse(step::clone, errno);
    e.pid = made.pid;
    e.pidfd.reset(made.pidfd);
    if (timeout != 0) e.timeout_at = sys::steady_ns() + static_cast<std::int64_t>(timeout);
    if (e.tty) {
        e.client_in = static_cast<sys::fd&&>(in);
        e.client_out = static_cast<sys::fd&&>(out);
    }
    e.status.arm(EPOLLIN);
    plan.unmap();
}

void signal_exec(std::uint32_t handle, int signal) noexcept {
    exec* e = exec_of_handle(handle);
    if (!e) return;
    if (signal == SIGKILL)
        kill_tree(*e);
    else
        sys::pidfd_send_signal(e->pidfd.get(), signal);
}

void resize_exec(std::uint32_t handle, std::uint32_t columns, std::uint32_t rows) noexcept {
    exec* e = exec_of_handle(handle);
    if (!e) return;
    e->size.ws_col = static_cast<unsigned short>(columns);
    e->size.ws_row = static_cast<unsigned short>(rows);
    if (e->master.open()) ::ioctl(e->master.fd(), TIOCSWINSZ, &e->size);
}

bool exec_ended(pid_t pid, int code, int signal) noexcept {
    exec* e = exec_of_pid(pid);
    if (!e) return false;
    while (e->status.open() && read_status(*e)) { // what it reported before it died comes first
    }
    e->ended = true;
    e->exit_code = signal != 0 ? 128 + signal : code;
    // The time that the caller gave bounds the wait for the output's end, too.
    e->drain_deadline = earlier(sys::steady_ns() + drain_ns, e->timeout_at);
    e->timeout_at = 0;
    if (e->answered) {
        retire(*e);
        return true;
    }
    e->out.drain();
    e->err.drain();
    answer_when_done(*e);
    return true;
}

std::int64_t execs_deadline() noexcept {
    std::int64_t due = 0;
    for (const exec* e = execs.head; e; e = e->next)
        due = earlier(earlier(due, earlier(e->timeout_at, e->drain_deadline)),
                      earlier(e->sweep_at, e->to_client.deadline()));
    return due;
}

void expire_execs(std::int64_t now) noexcept {
    const auto due = [now](std::int64_t at) { return at != 0 && at <= now; };
    for (exec* e = execs.head; e;) {
        exec* const next = e->next;
        if (due(e->sweep_at)) {
            e->sweep_at = 0;
            retire(*e);
        } else if (due(e->timeout_at)) {
            e->timeout_at = 0;
            e->timed_out = true;
            kill_tree(*e);
        } else if (due(e->to_client.deadline())) {
            e->to_client.close();
            client_changed(e);
        } else if (due(e->drain_deadline)) {
            e->drain_deadline = 0;
            answer_when_done(*e);
        }
        e = next;
    }
}

} // namespace gantry::cri_native::supervisor
