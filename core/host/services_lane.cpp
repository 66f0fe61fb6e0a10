// gantry.timer/1, gantry.fd/1 and gantry.executor/1: when and where plugin code runs.
#include "core/host/abi_copy.hpp"
#include "core/host/barrier.hpp"
#include "core/host/current_call.hpp"
#include "core/host/services.hpp"

namespace gantry::core {

namespace {

/// Work that is queued belongs to the operation that queued it.
std::uint64_t present_op(const instance& owner) {
    const auto& call = current_call::get();
    return call.instance == owner.interned_name() ? call.op : 0;
}

std::uint64_t after(const void* host, std::uint64_t delay_ns, gantry_task_fn fn, void* context) noexcept {
    return guarded(host, "timer.after", std::uint64_t{0}, [&](instance& owner) -> std::uint64_t {
        if (!fn) return 0;
        const auto delay = std::chrono::nanoseconds(static_cast<std::int64_t>(std::min<std::uint64_t>(delay_ns, INT64_MAX)));
        return owner.lane().after(delay, [&owner, fn, context] { owner.enter("timer", 0, [&] { fn(context); }); });
    });
}

std::int32_t cancel(const void* host, std::uint64_t timer) noexcept {
    return guarded(host, "timer.cancel", std::int32_t{0}, [&](instance& owner) -> std::int32_t { return owner.lane().cancel(timer); });
}

std::uint64_t watch(const void* host, std::int32_t fd, std::uint32_t events, gantry_fd_fn fn, void* context) noexcept {
    return guarded(host, "fd.watch", std::uint64_t{0}, [&](instance& owner) -> std::uint64_t {
        if (!fn) return 0;
        return owner.lane().watch(fd, events, [&owner, fn, context, fd](std::uint32_t ready) {
            owner.enter("fd", 0, [&] { fn(context, fd, ready); });
        });
    });
}

void unwatch(const void* host, std::uint64_t handle) noexcept {
    guarded(host, "fd.unwatch", [&](instance& owner) { owner.lane().unwatch(handle); });
}

gantry_status submit(const void* host, gantry_task_fn fn, void* context) noexcept {
    return guarded(host, "executor.submit", gantry_status{GANTRY_RESOURCE}, [&](instance& owner) -> gantry_status {
        if (!fn) return GANTRY_INVALID;
        const auto op = present_op(owner);
        return static_cast<gantry_status>(
            owner.workers().submit([&owner, fn, context, op] { owner.enter_worker(op, [&] { fn(context); }); }));
    });
}

void post(const void* host, gantry_task_fn fn, void* context) noexcept {
    guarded(host, "executor.post", [&](instance& owner) {
        if (fn) owner.post("task", present_op(owner), [fn, context] { fn(context); });
    });
}

} // namespace

gantry_timer_service make_timer_service(instance& owner) {
    return {.struct_size = sizeof(gantry_timer_service), .reserved = 0, .host = &owner, .after = after, .cancel = cancel};
}

gantry_fd_service make_fd_service(instance& owner) {
    return {.struct_size = sizeof(gantry_fd_service), .reserved = 0, .host = &owner, .watch = watch, .unwatch = unwatch};
}

gantry_executor_service make_executor_service(instance& owner) {
    return {.struct_size = sizeof(gantry_executor_service), .reserved = 0, .host = &owner, .submit = submit, .post = post};
}

} // namespace gantry::core
