#include "plugins/cri-native/supervisor/loop.hpp"

#include "plugins/cri-native/supervisor/deadlines.hpp"

namespace gantry::cri_native::supervisor {

namespace {

sys::fd epoll;

constexpr std::int64_t ns_per_ms = 1'000'000;

} // namespace

struct dispatcher {
    static void run(const epoll_event& event) noexcept {
        auto* ready = static_cast<watcher*>(event.data.ptr);
        ready->fn_(ready->self_, event.events);
    }
};

bool open_loop() noexcept {
    epoll.reset(::epoll_create1(EPOLL_CLOEXEC));
    return static_cast<bool>(epoll);
}

void watcher::assign(int fd, callback fn, void* self) noexcept {
    close();
    fd_.reset(fd);
    fn_ = fn;
    self_ = self;
}

bool watcher::arm(std::uint32_t events) noexcept {
    if (armed_ && events == events_) return true;
    epoll_event event{};
    event.events = events;
    event.data.ptr = this;
    if (::epoll_ctl(epoll.get(), armed_ ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd_.get(), &event) != 0) return false;
    armed_ = true;
    events_ = events;
    return true;
}

void watcher::disarm() noexcept {
    if (armed_) ::epoll_ctl(epoll.get(), EPOLL_CTL_DEL, fd_.get(), nullptr);
    armed_ = false;
}

void watcher::close() noexcept {
    disarm(); // a child may still share the description: closing alone would leave it in the set
    fd_.reset();
}

void run_loop() noexcept {
    for (;;) {
        const std::int64_t due = next_deadline();
        int timeout = -1;
        if (due != 0) {
            const std::int64_t left = due - sys::steady_ns();
            timeout = left <= 0 ? 0 : static_cast<int>(left / ns_per_ms) + 1;
        }
        epoll_event event{};
        const int n = ::epoll_wait(epoll.get(), &event, 1, timeout);
        if (n == 1) dispatcher::run(event);
        if (due != 0 && sys::steady_ns() >= due) run_deadlines();
    }
}

} // namespace gantry::cri_native::supervisor
