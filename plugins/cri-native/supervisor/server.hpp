// The supervisor's socket: one plugin process at a time, its requests, our replies and events.
#pragma once

#include <cstddef>
#include <cstdint>

#include "plugins/cri-native/launch/wire.hpp"
#include "plugins/cri-native/supervisor/sys.hpp"
#include "plugins/cri-native/supervisor/text.hpp"

namespace gantry::cri_native::supervisor {

namespace wire = launch::wire;
using wire::step;

/// Whom a reply goes to, also later: if the connection was lost meanwhile the reply is dropped.
struct requester {
    std::uint32_t connection = 0; ///< 0: nobody
    std::uint32_t seq = 0;
    std::uint16_t op = 0;
};

/// A message under construction. There is one at a time.
class message {
public:
    message(wire::op op, std::uint32_t seq, std::uint16_t flags) noexcept;
    message(const requester& to, bool failed) noexcept;

    wire::writer<message>& begin(wire::tag t) noexcept { return writer_.begin(t); }
    void end() noexcept { writer_.end(); }
    void set_more() noexcept;

    void append(const char* data, std::size_t size) noexcept;
    std::size_t size() const noexcept;
    char* data() noexcept;

private:
    wire::writer<message> writer_{*this};
};

struct request {
    requester from;
    wire::op op;
    wire::fields body;
    sys::fd fds[wire::max_message_fds];
    std::size_t fd_count = 0;
};

/// Listens on an inherited socket.
bool open_server(int listening) noexcept;
/// Sends to the connection it is meant for; `fd` goes along unless -1. A client that does not read is dropped: it
/// connects again and lists.
void send(message& m, const requester& to, int fd = -1) noexcept;
void reply_done(const requester& to) noexcept;
void reply_failure(const requester& to, step at, int err, text object = {}, text detail = {}) noexcept;
/// Sends an event to whoever is connected.
void send_event(message& m) noexcept;

/// Implemented by requests.cpp.
void handle(request& r) noexcept;

} // namespace gantry::cri_native::supervisor
