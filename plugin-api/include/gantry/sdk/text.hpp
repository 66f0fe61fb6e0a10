// Between the ABI's plain types and those of C++: strings, errors, the place where a call puts its error.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "../abi/base.h"
#include "result.hpp"

namespace gantry::sdk {

/// Borrows: text must outlive the call it is handed to.
constexpr gantry_str str(std::string_view text) noexcept { return {text.data(), text.size()}; }

constexpr std::string_view view(gantry_str text) noexcept {
    return text.p == nullptr ? std::string_view{} : std::string_view(text.p, text.n);
}

constexpr code code_of(gantry_status status) noexcept {
    return status >= GANTRY_OK && status <= GANTRY_INTERNAL ? static_cast<code>(status) : code::internal;
}

/// Borrows the strings of e. An empty message, which the ABI forbids, becomes a sentence that says so.
inline gantry_error to_abi(const error& e) noexcept {
    gantry_error out{};
    out.struct_size = sizeof(out);
    out.code = e.code == code::ok ? GANTRY_INTERNAL : static_cast<gantry_status>(e.code);
    out.sys_errno = e.sys_errno;
    out.retryable = e.retryable ? 1 : 0;
    out.retry_after_ms = e.retry_after.count() > 0 ? static_cast<std::uint64_t>(e.retry_after.count()) : 0;
    out.message =
        e.message.empty() ? str("the plugin gave an error without a message; report it to its vendor") : str(e.message);
    out.detail = str(e.detail);
    return out;
}

/// Copies what the sender's struct_size says is there.
inline error from_abi(const gantry_error& e) {
    error out;
    const auto has = [&](std::size_t end) { return e.struct_size >= end; };
    if (has(offsetof(gantry_error, code) + sizeof(e.code))) out.code = code_of(e.code);
    if (out.code == code::ok) out.code = code::internal;
    if (has(offsetof(gantry_error, sys_errno) + sizeof(e.sys_errno))) out.sys_errno = e.sys_errno;
    if (has(offsetof(gantry_error, retryable) + sizeof(e.retryable))) out.retryable = e.retryable != 0;
    if (has(offsetof(gantry_error, retry_after_ms) + sizeof(e.retry_after_ms)))
        out.retry_after = std::chrono::milliseconds(e.retry_after_ms);
    if (has(offsetof(gantry_error, message) + sizeof(e.message))) out.message = view(e.message);
    if (has(offsetof(gantry_error, detail) + sizeof(e.detail))) out.detail = view(e.detail);
    if (out.message.empty()) out.message = "failed as \"" + std::string(to_string(out.code)) + "\" without a message";
    return out;
}

/// Catches the error of a synchronous call: pass `catcher.sink()`, then ask `take()`.
class error_catcher {
public:
    error_catcher() : sink_{{sizeof(gantry_error_sink), 0, &set}, this} {}
    error_catcher(const error_catcher&) = delete;
    error_catcher& operator=(const error_catcher&) = delete;

    gantry_error_sink* sink() noexcept { return &sink_.base; }

    /// The error that was set, or one made of status when the callee set none.
    error take(gantry_status status, std::string_view what) {
        if (caught_) return *std::move(caught_);
        return {.code = status == GANTRY_OK ? code::internal : code_of(status),
                .message = std::string(what) + " failed as \"" + std::string(to_string(code_of(status))) + '"'};
    }

private:
    struct owned_sink {
        gantry_error_sink base; // first: set() gets a pointer to it
        error_catcher* owner;
    };
    static void set(gantry_error_sink* self, const gantry_error* e) noexcept {
        try {
            reinterpret_cast<owned_sink*>(self)->owner->caught_ = from_abi(*e);
        } catch (...) { // out of memory: take() then reports the status
        }
    }

    owned_sink sink_;
    std::optional<error> caught_;
};

/// Hands e to the other side, which copies it.
inline gantry_status report(gantry_error_sink* sink, const error& e) noexcept {
    const gantry_error out = to_abi(e);
    if (sink != nullptr && sink->set != nullptr) sink->set(sink, &out);
    return out.code;
}

} // namespace gantry::sdk
