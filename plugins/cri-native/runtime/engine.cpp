#include "plugins/cri-native/runtime/engine.hpp"

#include <algorithm>

#include "gantry/abi/draft/network.h"

namespace gantry::cri_native {

namespace {

/// The one value whose key is `id` or starts with it; an id is a prefix of at least 8 digits.
template <class Map>
typename Map::mapped_type find_by_id(const Map& map, const std::string& id) {
    if (const auto exact = map.find(id); exact != map.end()) return exact->second;
    if (id.size() < 8) return nullptr;
    typename Map::mapped_type found;
    for (const auto& [key, value] : map) {
        if (key.compare(0, id.size(), id) != 0) continue;
        if (found) return nullptr;
        found = value;
    }
    return found;
}

} // namespace

engine::engine(sdk::host host, settings with)
    : host_(std::move(host)), settings_(std::move(with)), records_(std::string(host_.run_dir()) + "/pods"),
      containers_dir_(std::string(host_.state_dir()) + "/containers"),
      supervisors_group_("/gantry-" + std::string(host_.node_instance()) + "/supervisors") {}

engine::~engine() = default;

sandbox_ptr engine::find_sandbox(const std::string& id) const { return find_by_id(sandboxes_, id); }

container_ptr engine::find_container(const std::string& id) const { return find_by_id(containers_, id); }

result<container_ptr> engine::running_container(const std::string& id) const {
    auto one = find_container(id);
    if (!one) return error{.code = code::not_found, .message = "container " + id + " does not exist"};
    if (one->state != phase::running)
        return error{.code = code::invalid,
                     .message = "container " + one->record.id() + " (" + one->record.config().metadata().name() +
                                ") is not running"};
    const auto pod = one->pod.lock();
    if (!pod || !pod->supervisor)
        return error{.code = code::unavailable, .message = "the supervisor of container " + id + " is gone"};
    return one;
}

op_task<cri::VersionResponse> engine::version(cri::VersionRequest, sdk::op) {
    cri::VersionResponse response;
    response.set_version("0.1.0");
    response.set_runtime_name("gantry");
    response.set_runtime_version(GANTRY_VERSION);
    response.set_runtime_api_version("v1");
    co_return response;
}

op_task<cri::StatusResponse> engine::status(cri::StatusRequest, sdk::op op) {
    cri::StatusResponse response;
    auto* runtime_ready = response.mutable_status()->add_conditions();
    runtime_ready->set_type("RuntimeReady");
    runtime_ready->set_status(true);
    const auto deadline = std::min(op.deadline(), std::chrono::steady_clock::now() + std::chrono::seconds(10));
    std::string request = "{}";
    const auto network = co_await host_.call(GANTRY_NETWORK, "status", std::move(request), deadline);
    auto* network_ready = response.mutable_status()->add_conditions();
    network_ready->set_type("NetworkReady");
    network_ready->set_status(network.ok());
    if (!network) {
        network_ready->set_reason("NetworkPluginNotReady");
        network_ready->set_message(network.error().message);
    }
    auto* handler = response.add_runtime_handlers();
    handler->mutable_features()->set_recursive_read_only_mounts(true);
    response.mutable_features()->set_supplemental_groups_policy(true);
    co_return response;
}

op_task<cri::UpdateRuntimeConfigResponse> engine::update_runtime_config(cri::UpdateRuntimeConfigRequest, sdk::op) {
    // The pod CIDR is the network plugin's business, which the node tells it itself.
    co_return cri::UpdateRuntimeConfigResponse{};
}

sdk::task<void> engine::start() {
    auto opened = co_await open_all();
    start_outcome_ = std::move(opened);
    if (!start_outcome_) host_.error("cri-native cannot start: " + start_outcome_.error().message);
    started_ = true;
    start_done_.notify(host_);
}

op_task<void> engine::ready() {
    while (!started_) {
        const auto woken = co_await start_done_.wait(host_);
        if (!woken) co_return woken.error();
    }
    co_return start_outcome_;
}

} // namespace gantry::cri_native
