// gantry.state/1 and gantry.exec/1.
#include <cerrno>

#include "core/host/abi_copy.hpp"
#include "core/host/barrier.hpp"
#include "core/host/current_call.hpp"
#include "core/host/services.hpp"

namespace gantry::core {

namespace {

constexpr std::uint32_t most_arguments = 65536;
constexpr std::uint32_t most_fds = 253;

gantry_status put(const void* host, gantry_str key, gantry_str value, gantry_error_sink* error) noexcept {
    return guarded(host, "state.put", gantry_status{GANTRY_RESOURCE}, [&](instance& owner) -> gantry_status {
        const auto done = owner.store().put(view(key), view(value));
        if (done) return GANTRY_OK;
        report(error, done.error());
        return static_cast<gantry_status>(done.error().code);
    });
}

gantry_status get(const void* host, gantry_str key, void (*fn)(void* context, gantry_str value), void* context) noexcept {
    return guarded(host, "state.get", gantry_status{GANTRY_RESOURCE}, [&](instance& owner) -> gantry_status {
        const auto value = owner.store().get(view(key));
        if (!value) return static_cast<gantry_status>(value.error().code);
        if (fn) fn(context, borrow(*value));
        return GANTRY_OK;
    });
}

void list(const void* host, void (*fn)(void* context, gantry_str key), void* context) noexcept {
    guarded(host, "state.list", [&](instance& owner) {
        for (const auto& key : owner.store().keys()) fn(context, borrow(key));
    });
}

std::vector<std::string> copy(const gantry_str* texts, std::uint32_t count) {
    std::vector<std::string> out;
    for (std::uint32_t i = 0; texts && i < count; ++i) out.emplace_back(view(texts[i]));
    return out;
}

std::int64_t spawn(const void* host, const gantry_exec_request* request, gantry_exit_fn fn, void* context) noexcept {
    return guarded(host, "exec.spawn", std::int64_t{-ENOMEM}, [&](instance& owner) -> std::int64_t {
        if (!request || request->struct_size < sizeof(gantry_exec_request) || request->argc > most_arguments ||
            request->envc > most_arguments || request->fd_count > most_fds)
            return -EINVAL;
        helper_program program{.argv = copy(request->argv, request->argc), .envp = copy(request->envp, request->envc)};
        for (std::uint32_t i = 0; request->fds && i < request->fd_count; ++i) program.fds.push_back(request->fds[i]);
        const auto deadline = request->deadline_ns == INT64_MAX
                                  ? std::chrono::steady_clock::time_point::max()
                                  : std::chrono::steady_clock::time_point(std::chrono::nanoseconds(request->deadline_ns));
        const auto& call = current_call::get();
        const auto op = call.instance == owner.interned_name() ? call.op : 0;
        const auto started = owner.helper_processes().spawn(
            std::move(program), deadline, [&owner, fn, context, op](int wait_status, bool timed_out) {
                if (fn) owner.enter("helper-exit", op, [&] { fn(context, wait_status, timed_out); });
            });
        if (started) return *started;
        log::debug("helper not started", {{"plugin", owner.name()}, {"error", started.error().message}});
        return started.error().sys_errno != 0 ? -started.error().sys_errno : -EIO;
    });
}

void kill(const void* host, std::int64_t pid) noexcept {
    guarded(host, "exec.kill", [&](instance& owner) { owner.helper_processes().kill(static_cast<pid_t>(pid)); });
}

} // namespace

gantry_state_service make_state_service(instance& owner) {
    return {.struct_size = sizeof(gantry_state_service), .reserved = 0, .host = &owner, .put = put, .get = get, .list = list};
}

gantry_exec_service make_exec_service(instance& owner) {
    return {.struct_size = sizeof(gantry_exec_service), .reserved = 0, .host = &owner, .spawn = spawn, .kill = kill};
}

} // namespace gantry::core
