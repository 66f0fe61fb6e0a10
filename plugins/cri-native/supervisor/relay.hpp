// Copying between descriptors without ever blocking: sink takes bytes and keeps what its reader does not take yet; pump
// moves a client's input to a process.
#pragma once

#include <cstddef>
#include <cstdint>

#include "plugins/cri-native/supervisor/loop.hpp"

namespace gantry::cri_native::supervisor {

/// Where output goes: a client's pipe or socket. While it has a backlog its producer should rest; a client that takes
/// nothing for stall_ns is given up, so that it cannot hold the container for ever.
class sink {
public:
    static constexpr std::int64_t stall_ns = 10'000'000'000;
    using callback = void (*)(void* self); ///< the backlog is gone, or the sink closed

    /// Takes the descriptor and makes it non-blocking.
    void open(int fd, callback changed, void* self) noexcept;
    void put(const char* data, std::size_t size) noexcept;
    void close() noexcept;
    bool is_open() const noexcept { return watch_.open(); }
    bool backlog() const noexcept { return used_ != 0; }
    std::int64_t deadline() const noexcept { return backlog() ? stalled_at_ : 0; }

private:
    static void ready(void* self, std::uint32_t events) noexcept;
    ssize_t write_some(const char* data, std::size_t size) noexcept;
    void drop_backlog() noexcept;

    watcher watch_;
    callback changed_ = nullptr;
    void* self_ = nullptr;
    char* bytes_ = nullptr;
    std::size_t capacity_ = 0;
    std::size_t at_ = 0;
    std::size_t used_ = 0;
    std::int64_t stalled_at_ = 0;
};

/// A client's input on its way to a process's stdin or terminal. Takes both descriptors.
class pump {
public:
    using callback = void (*)(void* self, bool source_ended); ///< the source ended, or the process takes no more

    /// False with errno where a descriptor cannot be watched.
    bool open(int from, int to, callback ended, void* self) noexcept;
    void close() noexcept;
    bool is_open() const noexcept { return from_.open(); }

private:
    static void readable(void* self, std::uint32_t events) noexcept;
    static void writable(void* self, std::uint32_t events) noexcept;
    bool push() noexcept;

    watcher from_;
    watcher to_;
    callback ended_ = nullptr;
    void* self_ = nullptr;
    char bytes_[4096];
    std::size_t at_ = 0;
    std::size_t used_ = 0;
};

/// Sets O_NONBLOCK.
void make_nonblocking(int fd) noexcept;

} // namespace gantry::cri_native::supervisor
