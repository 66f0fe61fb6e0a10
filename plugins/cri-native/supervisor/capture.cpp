#include "plugins/cri-native/supervisor/capture.hpp"

#include <sys/mman.h>

namespace gantry::cri_native::supervisor {

capture::~capture() { sys::pages_free(bytes_, limit_); }

bool capture::open(int fd, std::size_t limit, callback ended, void* self) noexcept {
    limit_ = limit != 0 ? limit : 1;
    void* pages = ::mmap(nullptr, limit_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    bytes_ = pages == MAP_FAILED ? nullptr : static_cast<char*>(pages);
    ended_ = ended;
    self_ = self;
    watch_.assign(fd, ready, this);
    return bytes_ && watch_.arm(EPOLLIN);
}

// False when there is nothing to read now, or ever again: then closed.
bool capture::read_once() noexcept {
    char beyond[4096];
    const bool keep = used_ < limit_;
    char* const to = keep ? bytes_ + used_ : beyond;
    const std::size_t room = keep ? limit_ - used_ : sizeof beyond;
    const ssize_t n = sys::retry([&] { return ::read(watch_.fd(), to, room); });
    if (n < 0 && errno == EAGAIN) return false;
    if (n <= 0) {
        watch_.close();
        return false;
    }
    if (keep) used_ += static_cast<std::size_t>(n);
    return true;
}

void capture::drain() noexcept {
    constexpr int max_reads = 64; // a living grandchild may write for ever
    for (int reads = 0; is_open() && reads < max_reads && read_once(); ++reads) {
    }
}

void capture::ready(void* self, std::uint32_t) noexcept {
    auto& c = *static_cast<capture*>(self);
    c.read_once();
    if (!c.is_open()) c.ended_(c.self_);
}

} // namespace gantry::cri_native::supervisor
