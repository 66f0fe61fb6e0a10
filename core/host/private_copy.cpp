#include "core/host/private_copy.hpp"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace gantry::core {

private_copy::~private_copy() {
    if (data_ != nullptr) ::munmap(data_, size_);
}

result<private_copy> private_copy::of(int fd, const std::string& name, std::size_t limit) {
    struct stat st {};
    if (::fstat(fd, &st) != 0) return sys_error("stat " + name, errno);
    const auto size = static_cast<std::size_t>(st.st_size);
    if (size > limit)
        return error{.code = code::resource,
                     .message = name + " has " + std::to_string(size) + " bytes, allowed " + std::to_string(limit)};
    if (size == 0) return private_copy();
    void* memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return sys_error("memory for " + name, errno);
    private_copy copy(static_cast<char*>(memory), size);
    for (std::size_t at = 0; at < size;) {
        const ssize_t n = ::pread(fd, copy.data_ + at, size - at, static_cast<off_t>(at));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return sys_error("read " + name, errno);
        if (n == 0) return error{.code = code::unavailable, .message = name + " was cut short while it was read"};
        at += static_cast<std::size_t>(n);
    }
    return copy;
}

} // namespace gantry::core
