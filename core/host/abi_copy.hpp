// From the ABI's borrowed structs to owned values and back. Reads no byte beyond a struct's own struct_size.
#pragma once

#include <string>
#include <string_view>

#include "core/host/call.hpp"
#include "gantry/abi/op.h"
#include "gantry/sdk/result.hpp"

namespace gantry::core {

inline std::string_view view(gantry_str text) noexcept { return text.p ? std::string_view(text.p, text.n) : std::string_view(); }
inline gantry_str borrow(std::string_view text) noexcept { return {text.data(), text.size()}; }

/// GANTRY_INTERNAL for values this build does not know.
code code_of(gantry_status status) noexcept;

/// A plugin's error; `who` ("net: add") stands in for a message that is missing.
error copy_error(const gantry_error& from, std::string_view who);

/// The error that a reply carries, or its bytes and copies of its fds. A null reply is an internal error.
result<op_reply> copy_reply(const gantry_reply* from, std::string_view who);

/// The reply is an error that does not say why.
bool fails_without_message(const gantry_reply* reply) noexcept;

/// An error as the ABI has it; it borrows from `from`.
gantry_error lend_error(const error& from) noexcept;

/// Collects what a synchronous call of the plugin sets.
class error_catcher {
public:
    explicit error_catcher(std::string who) : who_(std::move(who)) {}
    gantry_error_sink* sink() noexcept { return &sink_.base; }
    /// The outcome of a call that returned `status`.
    result<void> outcome(gantry_status status);
    /// The call failed and nothing said why.
    bool silent() const noexcept { return silent_; }

private:
    struct owned_sink {
        gantry_error_sink base;
        error_catcher* owner;
    };
    static void set(gantry_error_sink* self, const gantry_error* from) noexcept;

    std::string who_;
    error error_{};
    bool caught_ = false;
    bool silent_ = true;
    owned_sink sink_{{sizeof(gantry_error_sink), 0, &set}, this};
};

/// Hands an error of the host to the plugin's sink, if it gave one.
void report(gantry_error_sink* sink, const error& e) noexcept;

} // namespace gantry::core
