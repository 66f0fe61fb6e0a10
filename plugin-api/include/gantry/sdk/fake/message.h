// What a test hands to an operation and what it gets back.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "../../abi/op.h"

namespace gantry::fake {

inline gantry_str to_str(const std::string& text) { return {text.data(), text.size()}; }
inline std::string to_string(gantry_str text) { return text.n == 0 ? std::string() : std::string(text.p, text.n); }

/// A descriptor that closes with its last copy.
using shared_fd = std::shared_ptr<const int>;
inline shared_fd own_fd(int fd) {
    return shared_fd(new int(fd), [](const int* held) {
        if (*held >= 0) ::close(*held);
        delete held;
    });
}
inline std::vector<shared_fd> dup_fds(const std::int32_t* fds, std::uint32_t count) {
    std::vector<shared_fd> out;
    for (std::uint32_t i = 0; i < count; ++i) out.push_back(own_fd(::fcntl(fds[i], F_DUPFD_CLOEXEC, 3)));
    return out;
}

struct failure {
    gantry_status code = GANTRY_OK;
    int sys_errno = 0;
    bool retryable = false;
    std::uint64_t retry_after_ms = 0;
    std::string message;
    std::string detail;
};
inline failure copy_error(const gantry_error& e) {
    return {e.code, e.sys_errno, e.retryable != 0, e.retry_after_ms, to_string(e.message), to_string(e.detail)};
}

struct message {
    std::string bytes;
    std::vector<int> fds = {}; ///< borrowed
    std::string key = {};
};

/// The end of an operation, or of a step of an instance's life.
struct outcome {
    failure error; ///< code GANTRY_OK on success
    std::string bytes;
    std::vector<shared_fd> fds;

    bool ok() const { return error.code == GANTRY_OK; }
};
inline outcome copy_reply(const gantry_reply& reply) {
    outcome out;
    out.bytes = to_string(reply.bytes);
    out.fds = dup_fds(reply.fds, reply.fd_count);
    if (reply.error != nullptr) out.error = copy_error(*reply.error);
    return out;
}

/// A gantry_error_sink that keeps what is set.
struct error_sink {
    gantry_error_sink abi{sizeof(gantry_error_sink), 0, &error_sink::set}; // first: set() gets a pointer to it
    failure error;
    int calls = 0;

    static void set(gantry_error_sink* self, const gantry_error* e) {
        auto* sink = reinterpret_cast<error_sink*>(self);
        sink->error = copy_error(*e);
        ++sink->calls;
    }
};

} // namespace gantry::fake
