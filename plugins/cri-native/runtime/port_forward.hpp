// Relays bytes between two sockets on the lane, without copying them and without a buffer of its own.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "base/unique_fd.hpp"
#include "gantry/sdk/host.hpp"

namespace gantry::cri_native {

/// Connects a socket of a pod's network namespace to the pod's loopback. [worker]
result<base::unique_fd> connect_loopback(base::unique_fd socket, int family, std::uint16_t port);

/// Each way ends on its own (half-close); the relay ends when both have. [lane]
class port_relay {
public:
    port_relay(sdk::host host, base::unique_fd caller, base::unique_fd pod);
    ~port_relay();

    /// ended runs once, unless this fails or the relay is destroyed first.
    result<void> start(std::function<void(result<void>)> ended);

private:
    struct flow;
    result<void> arm();
    void on_ready();
    void finish(result<void> outcome);

    sdk::host host_;
    base::unique_fd caller_;
    base::unique_fd pod_;
    std::unique_ptr<flow> in_;  ///< caller to pod
    std::unique_ptr<flow> out_; ///< pod to caller
    std::uint32_t caller_events_ = 0;
    std::uint32_t pod_events_ = 0;
    sdk::watch caller_watch_;
    sdk::watch pod_watch_;
    std::function<void(result<void>)> ended_;
};

} // namespace gantry::cri_native
