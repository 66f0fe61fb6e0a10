// result<T>: the house's one error convention. Success holds a T; failure holds an error that says what failed, on which
// object, with which value, and what to do. Nothing throws for a failure of the world outside.
#pragma once

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <variant>

#include "../abi/base.h"

namespace gantry {

enum class code : std::int32_t {
    ok = GANTRY_OK,
    invalid = GANTRY_INVALID,
    not_found = GANTRY_NOT_FOUND,
    exists = GANTRY_EXISTS,
    busy = GANTRY_BUSY,
    timeout = GANTRY_TIMEOUT,
    cancelled = GANTRY_CANCELLED,
    unavailable = GANTRY_UNAVAILABLE,
    permission = GANTRY_PERMISSION,
    resource = GANTRY_RESOURCE,
    unsupported = GANTRY_UNSUPPORTED,
    internal = GANTRY_INTERNAL,
};

/// Lower-case name of a code ("not_found"); "internal" for values this build does not know.
constexpr std::string_view to_string(code c) noexcept {
    constexpr std::string_view names[] = {"ok",        "invalid",     "not_found",  "exists",   "busy",        "timeout",
                                          "cancelled", "unavailable", "permission", "resource", "unsupported", "internal"};
    const auto index = static_cast<std::size_t>(c);
    return index < std::size(names) ? names[index] : names[GANTRY_INTERNAL];
}

struct error {
    gantry::code code = gantry::code::internal;
    std::string message{};                    ///< never empty
    int sys_errno = 0;                        ///< errno of the failed system call, 0 if none
    bool retryable = false;                   ///< the same request may succeed later
    std::chrono::milliseconds retry_after{0}; ///< hint, 0 for none
    std::string detail{};                     ///< JSON object of strings, or empty
};

/// The code that fits an errno best.
constexpr code code_of_errno(int e) noexcept {
    switch (e) {
    case 0: return code::ok;
    case EINVAL: case ENAMETOOLONG: case ELOOP: case ENOEXEC: return code::invalid;
    case ENOENT: case ENOTDIR: case ESRCH: case ENODEV: case ENXIO: return code::not_found;
    case EEXIST: case ENOTEMPTY: return code::exists;
    case EBUSY: case EAGAIN: case ETXTBSY: return code::busy;
    case ETIMEDOUT: return code::timeout;
    case ECANCELED: return code::cancelled;
    case ECONNREFUSED: case ECONNRESET: case EPIPE: case ENOTCONN: case EHOSTUNREACH: return code::unavailable;
    case EACCES: case EPERM: case EROFS: return code::permission;
    case ENOSPC: case ENOMEM: case EMFILE: case ENFILE: case EDQUOT: return code::resource;
    case ENOSYS: case EOPNOTSUPP: return code::unsupported;
    default: return code::internal;
    }
}

/// A failed system call: "what: strerror". what names the call and the object ("open /etc/x").
inline error sys_error(std::string_view what, int e) {
    return {.code = code_of_errno(e),
            .message = std::string(what) + ": " + std::generic_category().message(e),
            .sys_errno = e,
            .retryable = e == EBUSY || e == EAGAIN || e == EINTR};
}

template <class T>
class [[nodiscard]] result {
public:
    result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
    result(gantry::error e) : state_(std::in_place_index<1>, std::move(e)) {}

    explicit operator bool() const noexcept { return state_.index() == 0; }
    bool ok() const noexcept { return state_.index() == 0; }
    T& value() & { return std::get<0>(state_); }
    const T& value() const& { return std::get<0>(state_); }
    T&& value() && { return std::get<0>(std::move(state_)); }
    T& operator*() & { return value(); }
    const T& operator*() const& { return value(); }
    T&& operator*() && { return std::move(*this).value(); }
    T* operator->() { return &value(); }
    const T* operator->() const { return &value(); }
    gantry::error& error() & { return std::get<1>(state_); }
    const gantry::error& error() const& { return std::get<1>(state_); }
    gantry::error&& error() && { return std::get<1>(std::move(state_)); }

private:
    std::variant<T, gantry::error> state_;
};

template <>
class [[nodiscard]] result<void> {
public:
    result() = default;
    result(gantry::error e) : error_(std::move(e)), failed_(true) {}

    explicit operator bool() const noexcept { return !failed_; }
    bool ok() const noexcept { return !failed_; }
    gantry::error& error() & { return error_; }
    const gantry::error& error() const& { return error_; }
    gantry::error&& error() && { return std::move(error_); }

private:
    gantry::error error_;
    bool failed_ = false;
};

#define GANTRY_CONCAT_(a, b) a##b
#define GANTRY_CONCAT(a, b) GANTRY_CONCAT_(a, b)
/// GANTRY_TRY(auto x, f()): x = value of f(), or return its error from this function.
#define GANTRY_TRY(declaration, expression) GANTRY_TRY_(declaration, expression, GANTRY_CONCAT(try_, __LINE__), return)
/// The same inside a coroutine.
#define GANTRY_CO_TRY(declaration, expression)                                                                   \
    GANTRY_TRY_(declaration, expression, GANTRY_CONCAT(try_, __LINE__), co_return)
#define GANTRY_TRY_(declaration, expression, name, leave)                                                        \
    auto name = (expression);                                                                                    \
    if (!name) leave std::move(name).error();                                                                    \
    declaration = *std::move(name)
/// GANTRY_CHECK(f()): the same for result<void>.
#define GANTRY_CHECK(expression)                                                                                 \
    do {                                                                                                         \
        if (auto check_ = (expression); !check_) return std::move(check_).error();                              \
    } while (false)
#define GANTRY_CO_CHECK(expression)                                                                              \
    do {                                                                                                         \
        if (auto check_ = (expression); !check_) co_return std::move(check_).error();                           \
    } while (false)

} // namespace gantry
