// gantry.op/1 and gantry.trace/1: the plugin's side of an operation.
#include "core/host/abi_copy.hpp"
#include "core/host/barrier.hpp"
#include "core/host/services.hpp"

namespace gantry::core {

namespace {

void complete(const void* host, gantry_op op, const gantry_reply* reply) noexcept {
    guarded(host, "op.complete", [&](instance& owner) { owner.ops().complete(op, reply); });
}

gantry_status item(const void* host, gantry_op op, const gantry_reply* reply) noexcept {
    return guarded(host, "op.item", gantry_status{GANTRY_RESOURCE}, [&](instance& owner) { return owner.ops().item(op, reply); });
}

void progress(const void* host, gantry_op op, const gantry_progress* progress) noexcept {
    guarded(host, "op.progress", [&](instance& owner) { owner.ops().progress(op, progress); });
}

std::int64_t deadline_ns(const void* host, gantry_op op) noexcept { return owner_of(host).ops().deadline_ns(op); }

std::int32_t is_cancelled(const void* host, gantry_op op) noexcept { return owner_of(host).ops().is_cancelled(op); }

void on_cancel(const void* host, gantry_op op, gantry_cancel_fn fn, void* context) noexcept {
    guarded(host, "op.on_cancel", [&](instance& owner) { owner.ops().on_cancel(op, fn, context); });
}

void step(const void* host, gantry_op op, gantry_str name) noexcept {
    guarded(host, "trace.step", [&](instance& owner) { owner.ops().step(op, view(name)); });
}

} // namespace

gantry_op_service make_op_service(instance& owner) {
    return {.struct_size = sizeof(gantry_op_service),
            .reserved = 0,
            .host = &owner,
            .complete = complete,
            .item = item,
            .progress = progress,
            .deadline_ns = deadline_ns,
            .is_cancelled = is_cancelled,
            .on_cancel = on_cancel};
}

gantry_trace_service make_trace_service(instance& owner) {
    return {.struct_size = sizeof(gantry_trace_service), .reserved = 0, .host = &owner, .step = step};
}

} // namespace gantry::core
