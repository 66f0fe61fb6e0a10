// PortForward: bytes between a caller's socket and a port inside the pod.
#include "plugins/cri-native/runtime/port_forward.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "plugins/cri-native/runtime/engine.hpp"

namespace gantry::cri_native {

namespace {

constexpr std::size_t pipe_bytes = 64u << 10;

struct address {
    sockaddr_storage bytes{};
    socklen_t size = 0;
};

address loopback(int family, std::uint16_t port) {
    address to;
    if (family == AF_INET) {
        auto* v4 = reinterpret_cast<sockaddr_in*>(&to.bytes);
        v4->sin_family = AF_INET;
        v4->sin_port = htons(port);
        v4->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        to.size = sizeof(sockaddr_in);
    } else {
        auto* v6 = reinterpret_cast<sockaddr_in6*>(&to.bytes);
        v6->sin6_family = AF_INET6;
        v6->sin6_port = htons(port);
        v6->sin6_addr = in6addr_loopback;
        to.size = sizeof(sockaddr_in6);
    }
    return to;
}

result<void> make_nonblocking(int fd) {
    const int flags = ::fcntl(fd, F_GETFL);
    if (flags < 0 || ::fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
        return sys_error("make a forwarded socket non-blocking", errno);
    return {};
}

} // namespace

/// One direction: what `from` sends goes through a pipe to `to`; nothing is copied to user space.
struct port_relay::flow {
    int from = -1;
    int to = -1;
    base::unique_fd pipe_in{};
    base::unique_fd pipe_out{};
    std::size_t pending = 0; ///< bytes in the pipe
    bool from_ended = false; ///< `from` will send no more
    bool done = false;       ///< and `to` was told so

    result<void> open() {
        int fds[2];
        if (::pipe2(fds, O_CLOEXEC | O_NONBLOCK) != 0) return sys_error("make a pipe for port-forward", errno);
        pipe_out.reset(fds[0]);
        pipe_in.reset(fds[1]);
        return {};
    }

    /// Moves what can be moved now. False when the connection is broken.
    bool move() {
        for (;;) {
            bool moved = false;
            if (!from_ended && pending < pipe_bytes) {
                const ssize_t n = ::splice(from, nullptr, pipe_in.get(), nullptr, pipe_bytes - pending,
                                           SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
                if (n > 0) pending += static_cast<std::size_t>(n);
                if (n == 0) from_ended = true;
                if (n < 0 && errno != EAGAIN && errno != EINTR) return false;
                moved = n >= 0;
            }
            if (pending > 0) {
                const ssize_t n =
                    ::splice(pipe_out.get(), nullptr, to, nullptr, pending, SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
                if (n > 0) pending -= static_cast<std::size_t>(n);
                if (n < 0 && errno != EAGAIN && errno != EINTR) return false;
                moved = moved || n > 0;
            }
            if (from_ended && pending == 0 && !done) {
                done = true;
                ::shutdown(to, SHUT_WR); // the other way stays open
            }
            if (done || !moved) return true;
        }
    }
    bool wants_input() const { return !from_ended && pending < pipe_bytes; }
    bool wants_output() const { return pending > 0; }
};

port_relay::port_relay(sdk::host host, base::unique_fd caller, base::unique_fd pod)
    : host_(std::move(host)), caller_(std::move(caller)), pod_(std::move(pod)) {}

port_relay::~port_relay() = default;

result<void> port_relay::start(std::function<void(result<void>)> ended) {
    ended_ = std::move(ended);
    GANTRY_CHECK(make_nonblocking(caller_.get()));
    GANTRY_CHECK(make_nonblocking(pod_.get()));
    in_ = std::make_unique<flow>();
    out_ = std::make_unique<flow>();
    in_->from = out_->to = caller_.get();
    in_->to = out_->from = pod_.get();
    GANTRY_CHECK(in_->open());
    GANTRY_CHECK(out_->open());
    return arm();
}

/// Watches each socket for what the flows wait for; level-triggered, so an idle direction must not be watched.
result<void> port_relay::arm() {
    const auto events_of = [](const flow& reading, const flow& writing) {
        return (reading.wants_input() ? EPOLLIN : 0u) | (writing.wants_output() ? EPOLLOUT : 0u);
    };
    const auto watch = [this](int fd, std::uint32_t events, std::uint32_t& present, sdk::watch& into) -> result<void> {
        if (events == present) return {};
        present = events;
        into.end();
        if (events == 0) return {};
        GANTRY_TRY(into, host_.watch_fd(fd, events, [this](std::int32_t, std::uint32_t) { on_ready(); }));
        return {};
    };
    GANTRY_CHECK(watch(caller_.get(), events_of(*in_, *out_), caller_events_, caller_watch_));
    return watch(pod_.get(), events_of(*out_, *in_), pod_events_, pod_watch_);
}

void port_relay::on_ready() {
    const bool intact = in_->move() && out_->move();
    if (intact && !(in_->done && out_->done)) {
        if (const auto armed = arm(); armed) return;
    }
    finish(intact ? result<void>{}
                  : result<void>(error{.code = code::unavailable, .message = "port-forward: the connection broke"}));
}

void port_relay::finish(result<void> outcome) {
    caller_watch_.end();
    pod_watch_.end();
    if (auto ended = std::exchange(ended_, nullptr)) ended(std::move(outcome));
}

result<base::unique_fd> connect_loopback(base::unique_fd socket, int family, std::uint16_t port) {
    const auto to = loopback(family, port);
    while (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&to.bytes), to.size) != 0) {
        if (errno == EINTR) continue;
        return sys_error("connect to port " + std::to_string(port) + " inside the pod", errno);
    }
    return socket;
}

op_task<void> engine::port_forward(cri::PortForwardRequest request, sdk::fd stream, sdk::op op) {
    const auto pod = find_sandbox(request.pod_sandbox_id());
    if (!pod)
        co_return error{.code = code::not_found, .message = "sandbox " + request.pod_sandbox_id() + " does not exist"};
    if (request.port_size() != 1 || request.port(0) < 1 || request.port(0) > 65535)
        co_return error{.code = code::invalid, .message = "port_forward takes one port between 1 and 65535"};
    const auto port = static_cast<std::uint16_t>(request.port(0));
    result<base::unique_fd> connected =
        error{.code = code::unavailable, .message = "sandbox " + pod->record.id() + " is not ready"};
    for (const int family : {AF_INET, AF_INET6}) {
        if (!pod->ready()) co_return std::move(connected).error();
        auto made = co_await outcome_of<base::unique_fd>(host_, [&](launch::callback<base::unique_fd> done) {
            pod->supervisor->socket(family, SOCK_STREAM | SOCK_CLOEXEC, std::move(done));
        });
        if (!made) {
            if (family == AF_INET) connected = std::move(made);
            continue; // a pod without IPv6 reports what IPv4 said
        }
        auto socket = std::make_shared<base::unique_fd>(std::move(*made));
        // Loopback answers at once; it is the accept queue of a busy server that may not.
        auto attempt = co_await host_.work([&] { return connect_loopback(std::move(*socket), family, port); });
        if (attempt || family == AF_INET) connected = std::move(attempt);
        if (connected) break;
    }
    if (!connected) co_return std::move(connected).error();
    const auto relay = std::make_unique<port_relay>(host_, base::unique_fd(stream.release()), std::move(*connected));
    const auto ended = co_await outcome_of<void>(host_, [&](launch::callback<void> done) {
        if (const auto started = relay->start(done); !started) return done(started.error());
        op.on_cancel([done, op] { done(op.cancelled_error()); });
    });
    co_return ended;
}

} // namespace gantry::cri_native
