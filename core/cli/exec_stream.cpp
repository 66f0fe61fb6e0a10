#include "core/cli/exec_stream.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <termios.h>

#include <optional>
#include <string>

#include "base/json.hpp"
#include "core/admin/frames.hpp"
#include "core/cli/json_path.hpp"

namespace gantry::core::cli {

namespace {

using admin::channel;

class raw_terminal {
public:
    explicit raw_terminal(bool wanted) {
        if (!wanted || ::tcgetattr(STDIN_FILENO, &saved_) != 0) return;
        termios raw = saved_;
        ::cfmakeraw(&raw);
        active_ = ::tcsetattr(STDIN_FILENO, TCSANOW, &raw) == 0;
    }
    ~raw_terminal() {
        if (active_) ::tcsetattr(STDIN_FILENO, TCSADRAIN, &saved_);
    }
    raw_terminal(const raw_terminal&) = delete;
    raw_terminal& operator=(const raw_terminal&) = delete;

private:
    termios saved_{};
    bool active_ = false;
};

result<void> write_all(int fd, std::string_view bytes, std::string_view what) {
    while (!bytes.empty()) {
        const ssize_t n = ::write(fd, bytes.data(), bytes.size());
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return sys_error(what, errno);
        bytes.remove_prefix(static_cast<std::size_t>(n));
    }
    return {};
}

result<void> read_all(int fd, char* out, std::size_t size) {
    while (size > 0) {
        const ssize_t n = ::read(fd, out, size);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return sys_error("read from the node", errno);
        if (n == 0)
            return error{.code = code::unavailable, .message = "the node closed the stream before the command's exit status"};
        out += n;
        size -= static_cast<std::size_t>(n);
    }
    return {};
}

std::string window_size_frame() {
    winsize size{};
    if (::ioctl(STDIN_FILENO, TIOCGWINSZ, &size) != 0) return {};
    const base::json::value resize{{"resize", {{"width", size.ws_col}, {"height", size.ws_row}}}};
    return admin::encode_frame(channel::control, base::to_text(resize));
}

/// Sends what the socket takes now. A node that has closed its end still owes its status frame: not an error here.
void send_some(int connection, std::string& pending) {
    const ssize_t n = ::send(connection, pending.data(), pending.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n >= 0)
        pending.erase(0, static_cast<std::size_t>(n));
    else if (errno != EAGAIN && errno != EINTR)
        pending.clear();
}

/// One frame from the node; the exit code once the status frame came.
result<std::optional<int>> receive_frame(int connection) {
    std::array<char, admin::frame_header_size> head{};
    GANTRY_CHECK(read_all(connection, head.data(), head.size()));
    const auto header = admin::decode_header(head);
    if (!header) return error{.code = code::internal, .message = "the node sent a malformed stream frame"};
    std::string payload(header->size, '\0');
    GANTRY_CHECK(read_all(connection, payload.data(), payload.size()));
    switch (header->channel) {
    case channel::stdout_data: GANTRY_CHECK(write_all(STDOUT_FILENO, payload, "write to stdout")); break;
    case channel::stderr_data: GANTRY_CHECK(write_all(STDERR_FILENO, payload, "write to stderr")); break;
    case channel::status: {
        GANTRY_TRY(const auto status, base::parse_json(payload, "the command's exit status"));
        if (const auto* e = find(status, "error"))
            return error{.code = code::internal, .message = text_at(*e, "message", "the command could not run")};
        return std::optional<int>(static_cast<int>(number_at(status, "exitCode", 1)));
    }
    default: break;
    }
    return std::optional<int>{};
}

} // namespace

result<int> relay_exec(base::unique_fd connection, exec_terminal terminal) {
    base::unique_fd signals;
    std::string pending; // to the node; stdin is read only while this is empty, so neither side can block the other
    if (terminal.tty) {
        sigset_t winch;
        sigemptyset(&winch);
        sigaddset(&winch, SIGWINCH);
        ::sigprocmask(SIG_BLOCK, &winch, nullptr);
        signals.reset(::signalfd(-1, &winch, SFD_CLOEXEC | SFD_NONBLOCK));
        pending = window_size_frame();
    }
    const raw_terminal raw(terminal.tty);
    bool stdin_open = terminal.interactive;
    if (!stdin_open) pending += admin::encode_frame(channel::stdin_data, {});
    for (;;) {
        const short connection_events = pending.empty() ? POLLIN : POLLIN | POLLOUT;
        pollfd polled[3] = {{connection.get(), connection_events, 0},
                            {stdin_open && pending.empty() ? STDIN_FILENO : -1, POLLIN, 0},
                            {signals.get(), POLLIN, 0}};
        if (::poll(polled, 3, -1) < 0) {
            if (errno == EINTR) continue;
            return sys_error("poll", errno);
        }
        if (polled[2].revents & POLLIN) {
            signalfd_siginfo ignored{};
            while (::read(signals.get(), &ignored, sizeof ignored) > 0) {}
            pending += window_size_frame();
        }
        if (polled[0].revents & POLLOUT) send_some(connection.get(), pending);
        if (polled[0].revents & ~POLLOUT) {
            GANTRY_TRY(const auto ended, receive_frame(connection.get()));
            if (ended) return *ended;
        }
        if (polled[1].revents != 0) {
            char buffer[32768];
            const ssize_t n = ::read(STDIN_FILENO, buffer, sizeof buffer);
            if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
            const std::string_view bytes(buffer, n > 0 ? static_cast<std::size_t>(n) : 0);
            stdin_open = !bytes.empty();
            pending += admin::encode_frame(channel::stdin_data, bytes);
        }
    }
}

} // namespace gantry::core::cli
