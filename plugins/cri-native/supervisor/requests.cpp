// What the plugin asks for.
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "plugins/cri-native/supervisor/container.hpp"
#include "plugins/cri-native/supervisor/exec.hpp"
#include "plugins/cri-native/supervisor/sandbox.hpp"
#include "plugins/cri-native/supervisor/server.hpp"

namespace gantry::cri_native::supervisor {

namespace {

void hello(const requester& from) noexcept {
    const sys::fd self(sys::pidfd_open(::getpid()));
    if (!self) return reply_failure(from, step::pipe, errno, text{"pidfd", 5});
    message m(from, false);
    m.begin(wire::tag::sandbox).u32(static_cast<std::uint32_t>(::getpid())).u32(sys::features);
    m.end();
    send(m, from, self.get());
}

void resize(const container& c, const requester& from, wire::fields body) noexcept {
    winsize size{};
    size.ws_col = static_cast<unsigned short>(body.u32());
    size.ws_row = static_cast<unsigned short>(body.u32());
    if (!c.tty || !c.out.open()) return reply_failure(from, step::state, ENOTTY, c.id);
    if (::ioctl(c.out.watch.fd(), TIOCSWINSZ, &size) != 0) return reply_failure(from, step::console, errno, c.id);
    reply_done(from);
}

void reopen_log(container& c, const requester& from) noexcept {
    if (c.log_path.size() == 0 || c.announced) return reply_done(from);
    if (!c.log.open(c.log_path.c_str())) return reply_failure(from, step::log, errno, c.log_path);
    reply_done(from);
}

void make_socket(const requester& from, wire::fields body) noexcept {
    const int family = body.i32();
    const int type = body.i32();
    const sys::fd made(::socket(family, type | SOCK_CLOEXEC, 0));
    if (!made) return reply_failure(from, step::socket, errno);
    message m(from, false);
    send(m, from, made.get());
}

void shut_down(const requester& from, bool force) noexcept {
    if (any_alive() && !force) return reply_failure(from, step::state, EBUSY);
    kill_all();
    reply_done(from);
    if (sandbox().pod_init() >= 0) sys::pidfd_send_signal(sandbox().pod_init(), SIGKILL);
    ::_exit(0);
}

void of_container(request& r) noexcept {
    wire::fields body = r.body;
    const text id = body.text();
    container* found = find_container(id);
    if (!found) return reply_failure(r.from, step::not_found, ENOENT, id);
    container& c = *found;
    switch (r.op) {
    case wire::op::start: return start_container(c, r.from);
    case wire::op::signal:
        if (c.ended) return reply_failure(r.from, step::state, ESRCH, id);
        signal_container(c, body.i32());
        return reply_done(r.from);
    case wire::op::forget:
        if (!c.announced) return reply_failure(r.from, step::state, EBUSY, id);
        forget_container(c);
        return reply_done(r.from);
    case wire::op::exec: {
        const std::uint32_t handle = body.u32();
        return start_exec(c, r, handle, body.u32());
    }
    case wire::op::attach: return attach(c, r, body.u32());
    case wire::op::resize: return resize(c, r.from, body);
    case wire::op::reopen_log: return reopen_log(c, r.from);
    default: return reply_failure(r.from, step::protocol, EOPNOTSUPP);
    }
}

} // namespace

void handle(request& r) noexcept {
    wire::fields body = r.body;
    if (sandbox().failed()) {
        sandbox().reply_failure_to(r.from);
        ::_exit(1); // there is nothing to hold
    }
    switch (r.op) {
    case wire::op::hello: return hello(r.from);
    case wire::op::create: return create_container(r);
    case wire::op::list: return list_containers(r.from);
    case wire::op::socket: return make_socket(r.from, body);
    case wire::op::shutdown: return shut_down(r.from, body.u32() != 0);
    case wire::op::exec_signal: {
        const std::uint32_t exec = body.u32();
        signal_exec(exec, body.i32());
        return;
    }
    case wire::op::exec_resize: {
        const std::uint32_t exec = body.u32();
        const std::uint32_t columns = body.u32();
        resize_exec(exec, columns, body.u32());
        return;
    }
    default: return of_container(r);
    }
}

} // namespace gantry::cri_native::supervisor
