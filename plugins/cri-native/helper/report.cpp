#include "plugins/cri-native/helper/report.hpp"

#include <poll.h>
#include <unistd.h>

namespace gantry::cri_helper {

void reporter::send(const base::json::object& message) const {
    std::string line = base::to_text(message) + "\n";
    for (std::string_view rest = line; !rest.empty();) {
        const ssize_t n = ::write(fd_, rest.data(), rest.size());
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) ::_exit(1);
        rest.remove_prefix(static_cast<std::size_t>(n));
    }
}

void reporter::fail(const error& e) const {
    send({{"type", "error"}, {"code", static_cast<int>(e.code)}, {"message", e.message}, {"errno", e.sys_errno}});
}

void reporter::warn(const std::string& text) const { send({{"type", "warning"}, {"message", text}}); }

error error_in(const base::json::object& message) {
    error e{.message = "the helper sent an error without text"};
    if (const auto* text = message.if_contains("message"); text != nullptr && text->is_string())
        e.message = text->as_string();
    if (const auto* number = message.if_contains("code"); number != nullptr && number->is_int64())
        e.code = static_cast<code>(number->as_int64());
    if (const auto* number = message.if_contains("errno"); number != nullptr && number->is_int64())
        e.sys_errno = static_cast<int>(number->as_int64());
    return e;
}

result<bool> line_splitter::read(int fd) {
    char buffer[65536];
    const ssize_t n = ::read(fd, buffer, sizeof buffer);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) return true;
    if (n < 0) return sys_error("read from helper", errno);
    if (n == 0) return false;
    pending_.append(buffer, static_cast<std::size_t>(n));
    if (pending_.size() > limit_ && pending_.find('\n') == std::string::npos)
        return error{.code = code::internal,
                     .message = "the helper sent a line of more than " + std::to_string(limit_) + " bytes"};
    return true;
}

bool line_splitter::next(std::string& line) {
    const auto end = pending_.find('\n');
    if (end == std::string::npos) return false;
    line = pending_.substr(0, end);
    pending_.erase(0, end + 1);
    return true;
}

} // namespace gantry::cri_helper
