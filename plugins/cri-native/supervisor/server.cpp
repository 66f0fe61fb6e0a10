#include "plugins/cri-native/supervisor/server.hpp"

#include <sys/socket.h>

#include "plugins/cri-native/supervisor/loop.hpp"

namespace gantry::cri_native::supervisor {

namespace {

constexpr std::size_t max_request = 8u << 10;

char out[wire::max_message];
std::size_t out_size = 0;

watcher listener;
watcher peer;     // said hello
watcher newcomer; // has not yet
std::uint32_t connection = 0;

void set_header(wire::op op, std::uint32_t seq, std::uint16_t flags, bool failed) noexcept {
    const wire::header head{wire::magic, wire::abi, static_cast<std::uint16_t>(op),
                            seq,         flags,     failed ? std::uint16_t{1} : std::uint16_t{0}};
    std::memcpy(out, &head, sizeof head);
    out_size = sizeof head;
}

bool transmit(int socket, int fd) noexcept {
    iovec part{out, out_size};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    msghdr m{};
    m.msg_iov = &part;
    m.msg_iovlen = 1;
    if (fd >= 0) {
        m.msg_control = control;
        m.msg_controllen = sizeof control;
        cmsghdr* head = CMSG_FIRSTHDR(&m);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(sizeof(int));
        std::memcpy(CMSG_DATA(head), &fd, sizeof fd);
    }
    return sys::retry([&] { return ::sendmsg(socket, &m, MSG_NOSIGNAL | MSG_DONTWAIT); }) ==
           static_cast<ssize_t>(out_size);
}

// The kernel's word on who connected: root only. (CVE-2020-15257.)
bool trusted(int socket) noexcept {
    ucred who{};
    socklen_t size = sizeof who;
    return ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0 && who.uid == 0;
}

bool hung_up(int socket) noexcept {
    char byte = 0;
    return ::recv(socket, &byte, sizeof byte, MSG_PEEK | MSG_DONTWAIT) == 0;
}

enum class received { nothing, message, closed };

received receive(int socket, char* bytes, std::size_t& size, request& r) noexcept {
    iovec part{bytes, max_request};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * wire::max_message_fds)];
    msghdr m{};
    m.msg_iov = &part;
    m.msg_iovlen = 1;
    m.msg_control = control;
    m.msg_controllen = sizeof control;
    const ssize_t n = sys::retry([&] { return ::recvmsg(socket, &m, MSG_CMSG_CLOEXEC | MSG_DONTWAIT); });
    if (n < 0 && errno == EAGAIN) return received::nothing;
    if (n <= 0) return received::closed;
    for (cmsghdr* head = CMSG_FIRSTHDR(&m); head; head = CMSG_NXTHDR(&m, head)) {
        if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS) continue;
        const std::size_t count = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (std::size_t i = 0; i < count; ++i) {
            int fd = -1;
            std::memcpy(&fd, CMSG_DATA(head) + i * sizeof fd, sizeof fd);
            if (r.fd_count < wire::max_message_fds)
                r.fds[r.fd_count++].reset(fd);
            else
                ::close(fd);
        }
    }
    size = static_cast<std::size_t>(n);
    return (m.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0 ? received::message : received::closed;
}

bool parse(const char* bytes, std::size_t size, request& r) noexcept {
    wire::header head;
    if (size < sizeof head) return false;
    std::memcpy(&head, bytes, sizeof head);
    if (head.magic != wire::magic || head.abi < 1) return false;
    r.op = static_cast<wire::op>(head.op);
    r.from = {connection, head.seq, head.op};
    wire::records records(bytes + sizeof head, size - sizeof head);
    while (records.next())
        if (records.is(wire::tag::request)) r.body = records.body();
    return !records.bad();
}

void peer_ready(void*, std::uint32_t) noexcept {
    char bytes[max_request];
    request r;
    std::size_t size = 0;
    const received what = receive(peer.fd(), bytes, size, r);
    if (what == received::nothing) return;
    if (what == received::closed || !parse(bytes, size, r)) {
        peer.close();
        return;
    }
    handle(r);
}

void newcomer_ready(void*, std::uint32_t) noexcept {
    char bytes[max_request];
    request r;
    std::size_t size = 0;
    const received what = receive(newcomer.fd(), bytes, size, r);
    if (what == received::nothing) return;
    if (what == received::closed || !parse(bytes, size, r) || r.op != wire::op::hello) return newcomer.close();
    if (peer.open() && hung_up(peer.fd())) peer.close(); // a plugin killed a moment ago
    if (peer.open()) {
        message m(r.from, true);
        m.begin(wire::tag::failure).u32(static_cast<std::uint32_t>(step::busy)).u32(EBUSY).text("", 0).text("", 0);
        m.end();
        transmit(newcomer.fd(), -1);
        return newcomer.close();
    }
    const int fd = ::fcntl(newcomer.fd(), F_DUPFD_CLOEXEC, 0);
    newcomer.close();
    if (fd < 0) return;
    if (++connection == 0) connection = 1;
    r.from.connection = connection;
    peer.assign(fd, peer_ready, nullptr);
    peer.arm(EPOLLIN);
    handle(r);
}

void listener_ready(void*, std::uint32_t) noexcept {
    const int fd = ::accept4(listener.fd(), nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) return;
    if (!trusted(fd)) {
        ::close(fd);
        return;
    }
    newcomer.assign(fd, newcomer_ready, nullptr);
    newcomer.arm(EPOLLIN);
}

} // namespace

message::message(wire::op op, std::uint32_t seq, std::uint16_t flags) noexcept { set_header(op, seq, flags, false); }

message::message(const requester& to, bool failed) noexcept {
    set_header(static_cast<wire::op>(to.op), to.seq, wire::flag_reply, failed);
}

void message::set_more() noexcept {
    wire::header head;
    std::memcpy(&head, out, sizeof head);
    head.flags |= wire::flag_more;
    std::memcpy(out, &head, sizeof head);
}

void message::append(const char* data, std::size_t size) noexcept {
    if (size > sizeof out - out_size) ::_exit(1); // callers keep messages small by construction
    std::memcpy(out + out_size, data, size);
    out_size += size;
}

std::size_t message::size() const noexcept { return out_size; }
char* message::data() noexcept { return out; }

bool open_server(int listening) noexcept {
    listener.assign(listening, listener_ready, nullptr);
    return listener.arm(EPOLLIN);
}

void send(message&, const requester& to, int fd) noexcept {
    if (!peer.open() || to.connection != connection) return;
    if (!transmit(peer.fd(), fd)) peer.close();
}

void reply_done(const requester& to) noexcept {
    message m(to, false);
    send(m, to);
}

void reply_failure(const requester& to, step at, int err, text object, text detail) noexcept {
    message m(to, true);
    const auto cut = [](text t) -> std::size_t { return t.size < 4096 ? t.size : 4096; };
    m.begin(wire::tag::failure)
        .u32(static_cast<std::uint32_t>(at))
        .u32(static_cast<std::uint32_t>(err))
        .text(object.data, cut(object))
        .text(detail.data, cut(detail));
    m.end();
    send(m, to);
}

void send_event(message& m) noexcept { send(m, {connection, 0, 0}); }

} // namespace gantry::cri_native::supervisor
