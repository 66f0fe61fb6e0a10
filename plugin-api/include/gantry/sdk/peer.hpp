// Calls of other plugins, through the host.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string_view>
#include <utility>
#include <vector>

#include "detail/context.hpp"
#include "message.hpp"
#include "op.hpp"

namespace gantry::sdk::detail {

/// Where a peer's reply goes, on a host thread that must not be blocked. Freed by the one call.
using reply_sink = unique_function<void(result<reply>)>;

inline void on_reply(void* raw, const gantry_reply* in) noexcept {
    const std::unique_ptr<reply_sink> sink(static_cast<reply_sink*>(raw));
    try {
        (*sink)(copy(*in));
    } catch (...) { // out of memory: whoever waits is ended by stop()
    }
}

inline result<void> call_peer_raw(const context& owner, std::string_view capability, std::string_view op,
                                  const request& with, time_point deadline, reply_sink sink) {
    if (!owner.open()) return owner.closed();
    const auto* service = owner.host().peer;
    if (service == nullptr) return missing_service(GANTRY_SERVICE_PEER);
    const auto fds = numbers(with.fds);
    const gantry_request out{sizeof(gantry_request), static_cast<std::uint32_t>(fds.size()), fds.data(), str(with.key),
                             str(with.bytes)};
    auto held = std::make_unique<reply_sink>(std::move(sink));
    error_catcher caught;
    const auto status = service->call(service->host, str(capability), str(op), &out, to_ns(deadline), &on_reply,
                                      held.get(), caught.sink());
    if (status != GANTRY_OK) return caught.take(status, "call of " + std::string(capability) + ' ' + std::string(op));
    (void)held.release(); // on_reply frees it
    return {};
}

inline result<void> call_peer(const std::shared_ptr<context>& owner, std::string_view capability, std::string_view op,
                              const request& with, time_point deadline, reply_sink f) {
    auto shared = std::make_shared<reply_sink>(std::move(f));
    return call_peer_raw(*owner, capability, op, with, deadline, [owner, shared](result<reply> answer) {
        owner->post([shared, answer = std::move(answer)]() mutable { (*shared)(std::move(answer)); },
                    "a reply callback");
    });
}

inline result<reply> call_peer_wait(const std::shared_ptr<context>& owner, std::string_view capability,
                                    std::string_view op, const request& with, time_point deadline,
                                    std::stop_token stop) {
    struct shared {
        std::mutex mutex;
        std::condition_variable_any arrived;
        std::optional<result<reply>> answer;
    };
    const auto wait = std::make_shared<shared>();
    GANTRY_CHECK(call_peer_raw(*owner, capability, op, with, deadline, [wait](result<reply> answer) {
        const std::lock_guard lock(wait->mutex);
        wait->answer.emplace(std::move(answer));
        wait->arrived.notify_all();
    }));
    std::unique_lock lock(wait->mutex);
    wait->arrived.wait(lock, stop, [&] { return wait->answer.has_value(); });
    if (wait->answer) return *std::move(wait->answer);
    return error{.code = code::cancelled,
                 .message = "call of " + std::string(capability) + ' ' + std::string(op) + ": the caller gave up",
                 .retryable = true};
}

} // namespace gantry::sdk::detail
