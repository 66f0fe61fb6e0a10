// A container's output on its way to the log and the attached, and the attached clients' input.
#include <initializer_list>
#include <new>

#include "plugins/cri-native/supervisor/container.hpp"
#include "plugins/cri-native/supervisor/deadlines.hpp"

namespace gantry::cri_native::supervisor {

namespace {

constexpr int max_sync_reads = 512; // of a dead container's rest: more than a pipe holds

char chunk[32u << 10];

bool clients_rest(const container& c) noexcept {
    for (const attachment* a = c.attachments.head; a; a = a->next)
        if (a->out.backlog() || a->err.backlog()) return false;
    return true;
}

void resume(container& c) noexcept {
    for (output* o : {&c.out, &c.err})
        if (o->open() && !o->watch.armed()) o->watch.arm(EPOLLIN);
}

void finish(output& o) noexcept {
    o.owner->log.finish(o.name, o.partial, sys::wall_ns());
    o.watch.close();
}

enum class read_result { data, later, end };

read_result read_once(output& o) noexcept {
    container& c = *o.owner;
    const ssize_t n = sys::retry([&] { return ::read(o.watch.fd(), chunk, sizeof chunk); });
    if (n < 0 && errno == EAGAIN) return read_result::later;
    if (n <= 0) { // a terminal whose last process is gone says EIO
        finish(o);
        return read_result::end;
    }
    const auto size = static_cast<std::size_t>(n);
    c.log.write(o.name, o.partial, chunk, size, sys::wall_ns());
    for (attachment* a = c.attachments.head; a; a = a->next) (&o == &c.out ? a->out : a->err).put(chunk, size);
    return read_result::data;
}

void release(attachment& a, const char* failure) noexcept {
    container& c = *a.owner;
    if (failure)
        reply_failure(a.client, step::stdio, errno, c.id,
                      text{failure, static_cast<std::uint32_t>(std::strlen(failure))});
    else
        reply_done(a.client);
    c.attachments.remove(&a);
    a.in.close();
    a.out.close();
    a.err.close();
    a.~attachment();
    sys::pages_free(&a, sizeof a);
}

// Done when it can get nothing more: its ends are closed, or the container's output ended and has been taken.
bool finished(const attachment& a) noexcept {
    if (a.out.backlog() || a.err.backlog()) return false;
    if (!a.wants_output) return !a.in.is_open();
    const container& c = *a.owner;
    const bool out_done = !a.out.is_open() || !c.out.open();
    const bool err_done = !a.err.is_open() || !c.err.open();
    return out_done && err_done && (c.out.open() || c.err.open() || c.ended || (!a.out.is_open() && !a.err.is_open()));
}

void settle(container& c) noexcept {
    for (attachment* a = c.attachments.head; a;) {
        attachment* const next = a->next;
        if (finished(*a)) release(*a, nullptr);
        a = next;
    }
}

void output_ready(void* self, std::uint32_t) noexcept {
    auto& o = *static_cast<output*>(self);
    container& c = *o.owner;
    const read_result got = read_once(o);
    settle(c);
    if (got == read_result::end) {
        announce_exit_when_drained(c);
        return;
    }
    if (clients_rest(c)) return;
    c.out.watch.disarm(); // a slow client slows the container down, until it is given up
    c.err.watch.disarm();
}

void sink_changed(void* self) noexcept {
    container& c = *static_cast<attachment*>(self)->owner;
    settle(c);
    if (clients_rest(c)) resume(c);
}

void input_ended(void* self, bool source_ended) noexcept {
    container& c = *static_cast<attachment*>(self)->owner;
    if (source_ended && (c.flags & wire::container_stdin_once)) {
        c.stdin_end.reset();
        for (attachment* a = c.attachments.head; a; a = a->next) a->in.close(); // each holds a duplicate
    }
    settle(c);
}

} // namespace

void watch_outputs(container& c, int out, int err) noexcept {
    const auto watch = [&c](output& o, const char* name, int fd) {
        if (fd < 0) return;
        make_nonblocking(fd);
        o.owner = &c;
        o.name = name;
        o.watch.assign(fd, output_ready, &o);
        o.watch.arm(EPOLLIN);
    };
    watch(c.out, "stdout", out);
    watch(c.err, "stderr", err);
}

void drain_outputs(container& c) noexcept {
    for (output* o : {&c.out, &c.err})
        for (int reads = 0; o->open() && reads < max_sync_reads && clients_rest(c); ++reads)
            if (read_once(*o) != read_result::data) break;
    settle(c);
}

void close_outputs(container& c) noexcept {
    for (output* o : {&c.out, &c.err})
        if (o->open()) finish(*o);
    settle(c);
}

void attach(container& c, request& r, std::uint32_t flags) noexcept {
    std::size_t wanted = 0;
    for (const auto bit : {wire::exec_stdin, wire::exec_stdout, wire::exec_stderr}) wanted += (flags & bit) != 0;
    if (wanted == 0 || r.fd_count != wanted) return reply_failure(r.from, step::protocol, EINVAL, c.id);
    if (c.ended) return reply_failure(r.from, step::state, ESRCH, c.id);
    void* pages = sys::pages_new(sizeof(attachment));
    if (!pages) return reply_failure(r.from, step::memory, ENOMEM, c.id);
    auto& a = *new (pages) attachment;
    a.owner = &c;
    a.client = r.from;
    c.attachments.push(&a);
    std::size_t next = 0;
    const int in = flags & wire::exec_stdin ? r.fds[next++].release() : -1;
    if (flags & wire::exec_stdout) a.out.open(r.fds[next++].release(), sink_changed, &a);
    if (flags & wire::exec_stderr) a.err.open(r.fds[next++].release(), sink_changed, &a);
    a.wants_output = a.out.is_open() || a.err.is_open();
    if (in < 0) return;
    const int to = c.stdin_end ? ::fcntl(c.stdin_end.get(), F_DUPFD_CLOEXEC, 0) : -1;
    if (to < 0) {
        ::close(in); // the container has no input: what the client sends goes nowhere
        settle(c);
        return;
    }
    if (!a.in.open(in, to, input_ended, &a)) release(a, "stdin cannot be watched");
}

void end_attachments(container& c) noexcept {
    while (c.attachments.head) release(*c.attachments.head, nullptr);
}

std::int64_t attachments_deadline(const container& c) noexcept {
    std::int64_t due = 0;
    for (const attachment* a = c.attachments.head; a; a = a->next)
        due = earlier(due, earlier(a->out.deadline(), a->err.deadline()));
    return due;
}

void expire_attachments(container& c, std::int64_t now) noexcept {
    bool expired = false;
    for (attachment* a = c.attachments.head; a; a = a->next)
        for (sink* s : {&a->out, &a->err}) {
            if (!s->backlog() || s->deadline() > now) continue;
            s->close();
            expired = true;
        }
    if (!expired) return;
    settle(c);
    if (clients_rest(c)) resume(c);
}

} // namespace gantry::cri_native::supervisor
