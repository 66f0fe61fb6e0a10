// CRI calls as coroutines: what the kernel asks of a runtime and its image service.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/awaitable.hpp>

#include "core/host/call.hpp"
#include "core/pod/cri.hpp"

namespace runtime::v1 {
class CreateContainerRequest;
class RunPodSandboxRequest;
} // namespace runtime::v1

namespace gantry::core {

/// Whose call it is. The uid keeps the calls that change one pod in order.
struct pod_ref {
    std::string uid{};
    std::string key{}; ///< "namespace/name"
};

struct listed_sandbox {
    std::string id;
    std::string uid;
    std::string name;
    std::string namespace_;
    bool ready = false;
};

struct listed_container {
    std::string id;
    std::string sandbox_id;
    std::string uid;
    container_phase phase = container_phase::unknown;
};

/// One item of the event stream. Parts that the runtime did not send are empty.
struct runtime_event {
    std::string uid; ///< of the pod; empty when the runtime did not say
    std::string id;  ///< of the container or sandbox
    bool deleted = false;
    std::optional<sandbox_view> sandbox{};
    std::vector<container_view> containers{};
};

/// References in arguments must outlive the call.
boost::asio::awaitable<result<std::string>> run_sandbox(plugin_client& client, const pod_ref& pod,
                                                        const ::runtime::v1::RunPodSandboxRequest& request);
boost::asio::awaitable<result<sandbox_view>> sandbox_status(plugin_client& client, const pod_ref& pod, std::string id);
/// Success when there is no such sandbox or container.
boost::asio::awaitable<result<void>> stop_sandbox(plugin_client& client, const pod_ref& pod, std::string id);
boost::asio::awaitable<result<void>> remove_sandbox(plugin_client& client, const pod_ref& pod, std::string id);
boost::asio::awaitable<result<std::string>> create_container(plugin_client& client, const pod_ref& pod,
                                                             const ::runtime::v1::CreateContainerRequest& request);
boost::asio::awaitable<result<void>> start_container(plugin_client& client, const pod_ref& pod, std::string id);
boost::asio::awaitable<result<void>> stop_container(plugin_client& client, const pod_ref& pod, std::string id,
                                                    std::chrono::seconds grace);
boost::asio::awaitable<result<void>> remove_container(plugin_client& client, const pod_ref& pod, std::string id);
boost::asio::awaitable<result<container_view>> container_status(plugin_client& client, const pod_ref& pod,
                                                                std::string id);
/// pod.uid empty: of all pods. Otherwise after every call that changes this pod.
boost::asio::awaitable<result<std::vector<listed_sandbox>>> list_sandboxes(plugin_client& client, const pod_ref& pod);
boost::asio::awaitable<result<std::vector<listed_container>>> list_containers(plugin_client& client,
                                                                              const pod_ref& pod);
/// Ends with an error when the stream ends.
boost::asio::awaitable<result<void>> watch_events(plugin_client& client, std::function<void(runtime_event)> on_event);
/// "containerd", from Version.
boost::asio::awaitable<result<std::string>> runtime_name(plugin_client& client);

/// Nothing: the image is not there.
boost::asio::awaitable<result<std::optional<image_facts>>> image_status(plugin_client& client, const pod_ref& pod,
                                                                        std::string image);
boost::asio::awaitable<result<void>> pull_image(plugin_client& client, const pod_ref& pod, std::string image);

} // namespace gantry::core
