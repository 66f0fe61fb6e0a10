#include "core/host/abi_copy.hpp"

#include <fcntl.h>

#include <cerrno>
#include <cstddef>

namespace gantry::core {

namespace {

constexpr std::uint32_t most_fds = 253; // what one SCM_RIGHTS message holds (unix(7))

/// True when `member` lies within the struct that the other side allocated.
#define REACHES(from, member) ((from).struct_size >= offsetof(std::remove_cvref_t<decltype(from)>, member) + sizeof((from).member))

} // namespace

code code_of(gantry_status status) noexcept {
    return status >= GANTRY_OK && status <= GANTRY_INTERNAL ? static_cast<code>(status) : code::internal;
}

error copy_error(const gantry_error& from, std::string_view who) {
    error to;
    if (REACHES(from, code)) to.code = code_of(from.code);
    if (to.code == code::ok) to.code = code::internal; // an error that says it is none
    if (REACHES(from, sys_errno)) to.sys_errno = from.sys_errno;
    if (REACHES(from, retryable)) to.retryable = from.retryable != 0;
    if (REACHES(from, retry_after_ms)) to.retry_after = std::chrono::milliseconds(from.retry_after_ms);
    if (REACHES(from, message)) to.message = view(from.message);
    if (REACHES(from, detail)) to.detail = view(from.detail);
    if (to.message.empty()) to.message = std::string(who) + " failed (" + std::string(to_string(to.code)) + ") and gave no reason";
    return to;
}

result<op_reply> copy_reply(const gantry_reply* from, std::string_view who) {
    if (!from) return error{.code = code::internal, .message = std::string(who) + " completed without a reply"};
    if (REACHES(*from, error) && from->error) return copy_error(*from->error, who);
    op_reply to;
    if (REACHES(*from, bytes)) to.bytes = view(from->bytes);
    if (!REACHES(*from, fds) || !from->fds) return to;
    if (from->fd_count > most_fds)
        return error{.code = code::internal, .message = std::string(who) + " replied with " + std::to_string(from->fd_count) + " fds"};
    for (std::uint32_t i = 0; i < from->fd_count; ++i) {
        base::unique_fd copy(::fcntl(from->fds[i], F_DUPFD_CLOEXEC, 0));
        if (!copy) return sys_error(std::string(who) + ": dup of reply fd " + std::to_string(from->fds[i]), errno);
        to.fds.push_back(std::move(copy));
    }
    return to;
}

bool fails_without_message(const gantry_reply* reply) noexcept {
    if (!reply || !REACHES(*reply, error) || !reply->error) return false;
    return !REACHES(*reply->error, message) || reply->error->message.n == 0;
}

gantry_error lend_error(const error& from) noexcept {
    return {.struct_size = sizeof(gantry_error),
            .code = static_cast<gantry_status>(from.code),
            .sys_errno = from.sys_errno,
            .retryable = from.retryable,
            .retry_after_ms = static_cast<std::uint64_t>(from.retry_after.count()),
            .message = borrow(from.message),
            .detail = borrow(from.detail)};
}

void error_catcher::set(gantry_error_sink* self, const gantry_error* from) noexcept {
    auto& owner = *reinterpret_cast<owned_sink*>(self)->owner; // base is its first member
    if (!from) return;
    owner.error_ = copy_error(*from, owner.who_);
    owner.caught_ = true;
    owner.silent_ = !REACHES(*from, message) || from->message.n == 0;
}

result<void> error_catcher::outcome(gantry_status status) {
    if (status == GANTRY_OK) return {};
    if (caught_) return std::move(error_);
    return error{.code = code_of(status),
                 .message = who_ + " failed (" + std::string(to_string(code_of(status))) + ") and gave no reason"};
}

void report(gantry_error_sink* sink, const error& e) noexcept {
    if (!sink || sink->struct_size < sizeof(gantry_error_sink) || !sink->set) return;
    const auto lent = lend_error(e);
    sink->set(sink, &lent);
}

} // namespace gantry::core
