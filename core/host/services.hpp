// The C tables that an instance gets from gantry_host::get. Their functions are in services_*.cpp; each takes the instance as
// its `host`, is noexcept, and may be called from any thread unless gantry/abi/host.h says otherwise.
#pragma once

#include <string>

#include "gantry/abi/host.h"
#include "gantry/abi/op.h"

namespace gantry::core {

class instance;

class host_services {
public:
    explicit host_services(instance& owner);
    host_services(const host_services&) = delete;
    host_services& operator=(const host_services&) = delete;

    const gantry_host* host() const noexcept { return &host_.base; }

private:
    struct owned_host {
        gantry_host base;
        const host_services* services;
    };
    static const void* get(const gantry_host* self, gantry_str id) noexcept;

    std::string state_dir_, run_dir_, config_;
    owned_host host_;
    gantry_op_service op_;
    gantry_log_service log_;
    gantry_metrics_service metrics_;
    gantry_events_service events_;
    gantry_timer_service timer_;
    gantry_fd_service fd_;
    gantry_executor_service executor_;
    gantry_config_service config_service_;
    gantry_state_service state_;
    gantry_exec_service exec_;
    gantry_peer_service peer_;
    gantry_trace_service trace_;
};

/// state_dir and run_dir of an instance.
std::string instance_state_dir(const instance& owner);
std::string instance_run_dir(const instance& owner);

// Each fills one table for the instance.
gantry_op_service make_op_service(instance& owner);
gantry_log_service make_log_service(instance& owner);
gantry_metrics_service make_metrics_service(instance& owner);
gantry_events_service make_events_service(instance& owner);
gantry_timer_service make_timer_service(instance& owner);
gantry_fd_service make_fd_service(instance& owner);
gantry_executor_service make_executor_service(instance& owner);
gantry_state_service make_state_service(instance& owner);
gantry_exec_service make_exec_service(instance& owner);
gantry_peer_service make_peer_service(instance& owner);
gantry_trace_service make_trace_service(instance& owner);

} // namespace gantry::core
