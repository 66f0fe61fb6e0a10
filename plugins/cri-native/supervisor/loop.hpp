// The event loop: epoll over watchers, one event at a time, so that a callback may destroy any watcher.
#pragma once

#include <sys/epoll.h>

#include <cstdint>

#include "plugins/cri-native/supervisor/sys.hpp"

namespace gantry::cri_native::supervisor {

/// Owns a descriptor that the loop may watch. fn(self, events) runs for it.
class watcher {
public:
    using callback = void (*)(void* self, std::uint32_t events);

    void assign(int fd, callback fn, void* self) noexcept;
    /// Watches for `events`; 0 still tells errors and hang-ups. False where the file cannot be watched.
    bool arm(std::uint32_t events) noexcept;
    /// Stops watching, hang-ups included.
    void disarm() noexcept;
    void close() noexcept;
    int fd() const noexcept { return fd_.get(); }
    bool open() const noexcept { return static_cast<bool>(fd_); }
    bool armed() const noexcept { return armed_; }

private:
    friend struct dispatcher;
    sys::fd fd_;
    callback fn_ = nullptr;
    void* self_ = nullptr;
    bool armed_ = false;
    std::uint32_t events_ = 0;
};

bool open_loop() noexcept;
[[noreturn]] void run_loop() noexcept;

/// Doubly linked, intrusive.
template <class T>
struct list {
    T* head = nullptr;

    void push(T* item) noexcept {
        item->previous = nullptr;
        item->next = head;
        if (head) head->previous = item;
        head = item;
    }
    void remove(T* item) noexcept {
        (item->previous ? item->previous->next : head) = item->next;
        if (item->next) item->next->previous = item->previous;
    }
};

} // namespace gantry::cri_native::supervisor
