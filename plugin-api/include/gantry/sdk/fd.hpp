// fd: owns one file descriptor.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>

#include "result.hpp"

namespace gantry::sdk {

class fd {
public:
    fd() = default;
    explicit fd(int number) noexcept : fd_(number) {}
    fd(fd&& other) noexcept : fd_(other.release()) {}
    fd& operator=(fd&& other) noexcept {
        reset(other.release());
        return *this;
    }
    ~fd() { reset(); }

    /// An own close-on-exec descriptor for the same open file.
    static result<fd> dup(int number) {
        const int copy = ::fcntl(number, F_DUPFD_CLOEXEC, 3);
        if (copy < 0) return sys_error("duplicate file descriptor " + std::to_string(number), errno);
        return fd(copy);
    }

    int get() const noexcept { return fd_; }
    explicit operator bool() const noexcept { return fd_ >= 0; }
    int release() noexcept { return std::exchange(fd_, -1); }
    void reset(int number = -1) noexcept {
        if (const int old = std::exchange(fd_, number); old >= 0) ::close(old);
    }

private:
    int fd_ = -1;
};

} // namespace gantry::sdk
