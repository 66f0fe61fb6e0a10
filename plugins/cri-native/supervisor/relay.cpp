#include "plugins/cri-native/supervisor/relay.hpp"

#include <fcntl.h>

#include <cstring>

namespace gantry::cri_native::supervisor {

void make_nonblocking(int fd) noexcept {
    const int flags = ::fcntl(fd, F_GETFL);
    if (flags >= 0 && (flags & O_NONBLOCK) == 0) ::fcntl(fd, F_SETFL, flags | O_NONBLOCK);
}

void sink::open(int fd, callback changed, void* self) noexcept {
    make_nonblocking(fd);
    changed_ = changed;
    self_ = self;
    watch_.assign(fd, ready, this);
    watch_.arm(0); // tells when the reader goes away; a regular file cannot be watched and need not be
}

ssize_t sink::write_some(const char* data, std::size_t size) noexcept {
    const ssize_t n = sys::retry([&] { return ::write(watch_.fd(), data, size); });
    return n < 0 && errno == EAGAIN ? 0 : n;
}

void sink::put(const char* data, std::size_t size) noexcept {
    if (!is_open() || size == 0) return;
    if (used_ == 0) {
        const ssize_t n = write_some(data, size);
        if (n < 0) return close();
        data += n;
        size -= static_cast<std::size_t>(n);
        if (size == 0) return;
    }
    if (!bytes_) {
        bytes_ = static_cast<char*>(sys::pages_new(size));
        capacity_ = size;
        at_ = 0;
    }
    if (!bytes_ || at_ + used_ + size > capacity_) return close(); // a producer that did not rest, or no memory
    std::memcpy(bytes_ + at_ + used_, data, size);
    used_ += size;
    stalled_at_ = sys::steady_ns() + stall_ns;
    watch_.arm(EPOLLOUT);
}

void sink::ready(void* self, std::uint32_t events) noexcept {
    auto& s = *static_cast<sink*>(self);
    if (s.used_ != 0 && (events & EPOLLOUT)) {
        const ssize_t n = s.write_some(s.bytes_ + s.at_, s.used_);
        if (n < 0) {
            s.close();
        } else {
            s.at_ += static_cast<std::size_t>(n);
            s.used_ -= static_cast<std::size_t>(n);
            s.stalled_at_ = sys::steady_ns() + stall_ns;
            if (s.used_ != 0) return;
            s.drop_backlog();
            s.watch_.arm(0);
        }
    } else if (events & (EPOLLERR | EPOLLHUP)) {
        s.close();
    }
    s.changed_(s.self_);
}

void sink::drop_backlog() noexcept {
    sys::pages_free(bytes_, capacity_);
    bytes_ = nullptr;
    used_ = capacity_ = at_ = 0;
}

void sink::close() noexcept {
    drop_backlog();
    watch_.close();
}

bool pump::open(int from, int to, callback ended, void* self) noexcept {
    ended_ = ended;
    self_ = self;
    make_nonblocking(from);
    make_nonblocking(to);
    from_.assign(from, readable, this);
    to_.assign(to, writable, this);
    at_ = used_ = 0;
    return from_.arm(EPOLLIN);
}

void pump::close() noexcept {
    from_.close();
    to_.close();
}

// False when the process takes no more.
bool pump::push() noexcept {
    while (used_ != 0) {
        const ssize_t n = sys::retry([&] { return ::write(to_.fd(), bytes_ + at_, used_); });
        if (n < 0 && errno == EAGAIN) {
            from_.disarm(); // hang-ups included: else a client that closed would wake us until the process reads
            return to_.arm(EPOLLOUT);
        }
        if (n < 0) return false;
        at_ += static_cast<std::size_t>(n);
        used_ -= static_cast<std::size_t>(n);
    }
    at_ = 0;
    to_.disarm();
    return from_.arm(EPOLLIN);
}

void pump::readable(void* self, std::uint32_t) noexcept {
    auto& p = *static_cast<pump*>(self);
    const ssize_t n = sys::retry([&] { return ::read(p.from_.fd(), p.bytes_, sizeof p.bytes_); });
    if (n < 0 && errno == EAGAIN) return;
    if (n > 0) {
        p.used_ = static_cast<std::size_t>(n);
        if (p.push()) return;
    }
    p.close();
    p.ended_(p.self_, n <= 0);
}

void pump::writable(void* self, std::uint32_t) noexcept {
    auto& p = *static_cast<pump*>(self);
    if (p.push()) return;
    p.close();
    p.ended_(p.self_, false);
}

} // namespace gantry::cri_native::supervisor
