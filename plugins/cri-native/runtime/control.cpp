#include "plugins/cri-native/runtime/control.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <cerrno>

#include "base/json.hpp"

namespace gantry::cri_native {

namespace {

namespace json = base::json;

std::int64_t number_of(const json::object& object, const char* key) {
    const auto* value = object.if_contains(key);
    return value != nullptr && value->is_int64() ? value->get_int64() : -1;
}

} // namespace

std::optional<control_message> parse_control(std::string_view line) {
    const auto document = base::parse_json(line, "control message");
    if (!document || !document->is_object()) return std::nullopt;
    const auto& object = document->get_object();
    control_message message;
    if (const auto* resize = object.if_contains("resize"); resize != nullptr && resize->is_object()) {
        const auto width = number_of(resize->get_object(), "width");
        const auto height = number_of(resize->get_object(), "height");
        if (width < 1 || width > UINT16_MAX || height < 1 || height > UINT16_MAX) return std::nullopt;
        message.columns = static_cast<std::uint16_t>(width);
        message.rows = static_cast<std::uint16_t>(height);
        return message;
    }
    const auto signal = number_of(object, "signal");
    if (signal < 1 || signal > 64) return std::nullopt;
    message.signal = static_cast<int>(signal);
    return message;
}

result<std::unique_ptr<control_channel>> control_channel::open(const sdk::host& host, int socket, handler f) {
    std::unique_ptr<control_channel> channel(new control_channel(std::move(f)));
    auto* self = channel.get();
    GANTRY_TRY(channel->watch_,
               host.watch_fd(socket, EPOLLIN, [self](std::int32_t fd, std::uint32_t) { self->on_readable(fd); }));
    return channel;
}

void control_channel::on_readable(int socket) {
    char line[512];
    const ssize_t n = ::recv(socket, line, sizeof line, MSG_DONTWAIT);
    if (n > 0) {
        if (const auto message = parse_control({line, static_cast<std::size_t>(n)})) f_(*message);
    } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
        watch_.end();
    }
}

} // namespace gantry::cri_native
