#include "core/host/services.hpp"

#include "core/host/abi_copy.hpp"
#include "core/host/instance.hpp"

namespace gantry::core {

std::string instance_state_dir(const instance& owner) { return owner.node().node.state_root() + "/plugins/" + owner.name(); }
std::string instance_run_dir(const instance& owner) { return owner.node().node.run_root() + "/plugins/" + owner.name(); }

host_services::host_services(instance& owner)
    : state_dir_(instance_state_dir(owner)), run_dir_(instance_run_dir(owner)), config_(base::to_text(owner.settings().config)),
      host_{{sizeof(gantry_host), GANTRY_ABI_MAJOR, GANTRY_ABI_MINOR, &get}, this}, op_(make_op_service(owner)),
      log_(make_log_service(owner)), metrics_(make_metrics_service(owner)), events_(make_events_service(owner)),
      timer_(make_timer_service(owner)), fd_(make_fd_service(owner)), executor_(make_executor_service(owner)),
      config_service_{.struct_size = sizeof(gantry_config_service),
                      .reserved = 0,
                      .host = &owner,
                      .instance = borrow(owner.name()),
                      .node_name = borrow(owner.node().node.name),
                      .node_instance = borrow(owner.node().node.instance),
                      .state_dir = borrow(state_dir_),
                      .run_dir = borrow(run_dir_),
                      .json = borrow(config_)},
      state_(make_state_service(owner)), exec_(make_exec_service(owner)), peer_(make_peer_service(owner)),
      trace_(make_trace_service(owner)) {}

const void* host_services::get(const gantry_host* self, gantry_str id) noexcept {
    const auto& services = *reinterpret_cast<const owned_host*>(self)->services; // base is its first member
    const auto wanted = view(id);
    if (wanted == GANTRY_SERVICE_OP) return &services.op_;
    if (wanted == GANTRY_SERVICE_LOG) return &services.log_;
    if (wanted == GANTRY_SERVICE_METRICS) return &services.metrics_;
    if (wanted == GANTRY_SERVICE_EVENTS) return &services.events_;
    if (wanted == GANTRY_SERVICE_TIMER) return &services.timer_;
    if (wanted == GANTRY_SERVICE_FD) return &services.fd_;
    if (wanted == GANTRY_SERVICE_EXECUTOR) return &services.executor_;
    if (wanted == GANTRY_SERVICE_CONFIG) return &services.config_service_;
    if (wanted == GANTRY_SERVICE_STATE) return &services.state_;
    if (wanted == GANTRY_SERVICE_EXEC) return &services.exec_;
    if (wanted == GANTRY_SERVICE_PEER) return &services.peer_;
    if (wanted == GANTRY_SERVICE_TRACE) return &services.trace_;
    return nullptr;
}

} // namespace gantry::core
