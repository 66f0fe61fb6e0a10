// Keeps the first bytes of a command's output.
#pragma once

#include <cstddef>
#include <cstdint>

#include "plugins/cri-native/supervisor/loop.hpp"

namespace gantry::cri_native::supervisor {

class capture {
public:
    using callback = void (*)(void* self); ///< the stream ended

    ~capture();
    /// Takes the reading end of a pipe. Memory is reserved for `limit` bytes and used as they come.
    bool open(int fd, std::size_t limit, callback ended, void* self) noexcept;
    /// Reads what is there now.
    void drain() noexcept;
    void stop() noexcept { watch_.close(); }
    bool is_open() const noexcept { return watch_.open(); }
    const char* data() const noexcept { return bytes_; }
    std::size_t size() const noexcept { return used_; }

private:
    static void ready(void* self, std::uint32_t events) noexcept;
    bool read_once() noexcept;

    watcher watch_;
    callback ended_ = nullptr;
    void* self_ = nullptr;
    char* bytes_ = nullptr;
    std::size_t limit_ = 0;
    std::size_t used_ = 0;
};

} // namespace gantry::cri_native::supervisor
