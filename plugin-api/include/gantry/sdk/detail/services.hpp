// The host's service tables, looked up once per instance.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "../../abi/host.h"
#include "../result.hpp"
#include "../text.hpp"

namespace gantry::sdk::detail {

/// A table that is absent, or shorter than the first release of its interface, is nullptr.
struct services {
    const gantry_op_service* op = nullptr;
    const gantry_log_service* log = nullptr;
    const gantry_metrics_service* metrics = nullptr;
    const gantry_events_service* events = nullptr;
    const gantry_timer_service* timer = nullptr;
    const gantry_fd_service* fd = nullptr;
    const gantry_executor_service* executor = nullptr;
    const gantry_config_service* config = nullptr;
    const gantry_state_service* state = nullptr;
    const gantry_exec_service* exec = nullptr;
    const gantry_peer_service* peer = nullptr;
    const gantry_trace_service* trace = nullptr;

    explicit services(const gantry_host* host) {
        find(host, GANTRY_SERVICE_OP, &gantry_op_service::on_cancel, op);
        find(host, GANTRY_SERVICE_LOG, &gantry_log_service::write, log);
        find(host, GANTRY_SERVICE_METRICS, &gantry_metrics_service::record, metrics);
        find(host, GANTRY_SERVICE_EVENTS, &gantry_events_service::emit, events);
        find(host, GANTRY_SERVICE_TIMER, &gantry_timer_service::cancel, timer);
        find(host, GANTRY_SERVICE_FD, &gantry_fd_service::unwatch, fd);
        find(host, GANTRY_SERVICE_EXECUTOR, &gantry_executor_service::post, executor);
        find(host, GANTRY_SERVICE_CONFIG, &gantry_config_service::json, config);
        find(host, GANTRY_SERVICE_STATE, &gantry_state_service::list, state);
        find(host, GANTRY_SERVICE_EXEC, &gantry_exec_service::kill, exec);
        find(host, GANTRY_SERVICE_PEER, &gantry_peer_service::call, peer);
        find(host, GANTRY_SERVICE_TRACE, &gantry_trace_service::step, trace);
    }
    services() = default;

private:
    template <class Table, class Member>
    static void find(const gantry_host* host, const char* id, Member Table::*last, const Table*& out) {
        const auto* table = static_cast<const Table*>(host->get(host, str(id)));
        if (table == nullptr) return;
        const auto* end = reinterpret_cast<const char*>(&(table->*last)) + sizeof(Member);
        const auto size = end - reinterpret_cast<const char*>(table);
        if (table->struct_size >= static_cast<std::uint64_t>(size)) out = table;
    }
};

inline error missing_service(std::string_view id) {
    return {.code = code::unsupported,
            .message = "this gantry does not offer the host service " + std::string(id) +
                       ", which the plugin needs; run a gantry that has it"};
}

} // namespace gantry::sdk::detail
