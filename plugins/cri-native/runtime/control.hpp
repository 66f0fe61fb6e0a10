// The control socket of exec_stream and attach_stream (abi/draft/runtime.h): terminal sizes and signals from the
// caller.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "gantry/sdk/host.hpp"

namespace gantry::cri_native {

struct control_message {
    std::uint16_t columns = 0; ///< 0: the message was no resize
    std::uint16_t rows = 0;
    int signal = 0; ///< 0: the message was no signal
};

/// {"resize":{"width":W,"height":H}} or {"signal":N}; nullopt for anything else, sizes out of range included. Pure.
/// [any]
std::optional<control_message> parse_control(std::string_view line);

/// Calls f on the lane with each message of the SOCK_SEQPACKET socket (borrowed), until the socket ends or the channel
/// goes.
class control_channel {
public:
    using handler = std::function<void(const control_message&)>;
    static result<std::unique_ptr<control_channel>> open(const sdk::host& host, int socket, handler f);

private:
    explicit control_channel(handler f) : f_(std::move(f)) {}
    void on_readable(int socket);

    handler f_;
    sdk::watch watch_;
};

} // namespace gantry::cri_native
