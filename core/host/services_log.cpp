// gantry.log/1 and gantry.metrics/1.
#include <algorithm>
#include <vector>

#include "core/host/abi_copy.hpp"
#include "core/host/barrier.hpp"
#include "core/host/current_call.hpp"
#include "core/host/services.hpp"

namespace gantry::core {

namespace {

constexpr std::uint32_t most_fields = 64;

log_level level_of(std::int32_t level) { return static_cast<log_level>(std::clamp<std::int32_t>(level, GANTRY_LOG_DEBUG, GANTRY_LOG_ERROR)); }

std::int32_t enabled(const void* host, std::int32_t level) noexcept { return owner_of(host).log().enabled(level_of(level)); }

void write(const void* host, std::int32_t level, gantry_str message, const gantry_field* fields, std::uint32_t count) noexcept {
    guarded(host, "log.write", [&](instance& owner) {
        if (!owner.log().enabled(level_of(level))) return;
        std::vector<log::field> all;
        op_router::pod_of_op pod; // of the operation on whose behalf this thread works
        const auto& call = current_call::get();
        if (call.op != 0 && call.instance == owner.interned_name()) pod = owner.ops().pod_of(call.op);
        if (!pod.pod.empty()) all.push_back({"pod", pod.pod});
        if (!pod.pod_uid.empty()) all.push_back({"uid", pod.pod_uid});
        if (!pod.op.empty()) all.push_back({"op", pod.op});
        for (std::uint32_t i = 0; fields && i < std::min(count, most_fields); ++i) all.push_back({view(fields[i].key), view(fields[i].value)});
        owner.log().write(level_of(level), view(message), all);
    });
}

std::uint32_t define(const void* host, std::int32_t kind, gantry_str name, gantry_str help) noexcept {
    return guarded(host, "metrics.define", std::uint32_t{0},
                   [&](instance& owner) { return owner.metrics().define(kind, view(name), view(help)); });
}

void record(const void* host, std::uint32_t metric, gantry_str label, double value) noexcept {
    guarded(host, "metrics.record", [&](instance& owner) { owner.metrics().record(metric, view(label), value); });
}

} // namespace

gantry_log_service make_log_service(instance& owner) {
    return {.struct_size = sizeof(gantry_log_service), .reserved = 0, .host = &owner, .enabled = enabled, .write = write};
}

gantry_metrics_service make_metrics_service(instance& owner) {
    return {.struct_size = sizeof(gantry_metrics_service), .reserved = 0, .host = &owner, .define = define, .record = record};
}

} // namespace gantry::core
