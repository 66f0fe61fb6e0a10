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

/// Where a peer's reply goes, on the lane.
using reply_sink = unique_function<void(result<reply>)>;
using reply_callback = callback<void(result<reply>)>;

inline void on_reply(void* raw, const gantry_reply* in) noexcept {
    const auto one = context::claim<reply_callback>(raw);
    if (!one) return;
    const auto self = one->owner.shared_from_this();
    const auto deliver = [&] { one->f(copy(*in)); };
    self->guarded(one->kind, deliver);
}

inline result<void> call_peer_raw(context& owner, std::string_view capability, std::string_view op, const request& with,
                                  time_point deadline, reply_sink sink) {
    if (!owner.open()) return owner.closed();
    const auto* service = owner.host().peer;
    if (service == nullptr) return missing_service(GANTRY_SERVICE_PEER);
    const auto fds = numbers(with.fds);
    const gantry_request out{sizeof(gantry_request), static_cast<std::uint32_t>(fds.size()), fds.data(), str(with.key),
                             str(with.bytes)};
    auto* one = owner.keep<void(result<reply>)>("a reply callback", std::move(sink));
    error_catcher caught;
    const auto status =
        service->call(service->host, str(capability), str(op), &out, to_ns(deadline), &on_reply, one, caught.sink());
    if (status == GANTRY_OK) return {};
    owner.free(one);
    return caught.take(status, "call of " + std::string(capability) + ' ' + std::string(op));
}

inline result<void> call_peer(const std::shared_ptr<context>& owner, std::string_view capability, std::string_view op,
                              const request& with, time_point deadline, reply_sink f) {
    return call_peer_raw(
        *owner, capability, op, with, deadline, [&to = *owner, f = std::move(f)](result<reply> r) mutable {
            to.post([f = std::move(f), r = std::move(r)]() mutable { f(std::move(r)); }, "a reply callback");
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
