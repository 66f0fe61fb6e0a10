#include "core/kernel/cri_client.hpp"

#include "core/pod/names.hpp"
#include "gantry/abi/draft/image.h"
#include "gantry/abi/draft/runtime.h"
#include "proto/cri.pb.h"

namespace gantry::core {

namespace asio = boost::asio;
namespace cri = ::runtime::v1;

namespace {

using std::chrono::minutes;
using std::chrono::nanoseconds;

constexpr nanoseconds usual = minutes(2);

#define GANTRY_RUNTIME_OP(member) GANTRY_OP(GANTRY_RUNTIME, gantry_runtime, member)
#define GANTRY_IMAGE_OP(member) GANTRY_OP(GANTRY_IMAGE, gantry_image, member)

enum class order { keyed, free };

template <class Response, class Request>
asio::awaitable<result<Response>> invoke(plugin_client& client, op_ref op, const Request& request, const pod_ref& pod,
                                         order keyed, nanoseconds timeout = usual) {
    op_request call;
    call.bytes = request.SerializeAsString();
    if (keyed == order::keyed) call.key = pod.uid;
    call_options options;
    options.timeout = timeout;
    options.pod = pod.key;
    options.pod_uid = pod.uid;
    auto reply = co_await client.call(op, std::move(call), std::move(options));
    if (!reply) co_return std::move(reply).error();
    Response response;
    if (!response.ParseFromString(reply->bytes))
        co_return error{.code = code::internal,
                        .message = std::string(client.instance()) + ": " + std::string(op.name) +
                                   ": the reply is no " + response.GetTypeName()};
    co_return response;
}

/// Drops the response, and takes "no such thing" as success.
template <class Response>
result<void> gone(result<Response> reply) {
    if (!reply && reply.error().code != code::not_found) return std::move(reply).error();
    return {};
}

std::string value(const google::protobuf::Map<std::string, std::string>& labels, const char* key) {
    const auto it = labels.find(key);
    return it == labels.end() ? std::string() : it->second;
}

container_phase phase_of(cri::ContainerState state) {
    switch (state) {
    case cri::CONTAINER_CREATED: return container_phase::created;
    case cri::CONTAINER_RUNNING: return container_phase::running;
    case cri::CONTAINER_EXITED: return container_phase::exited;
    default: return container_phase::unknown;
    }
}

runtime_event to_event(const cri::ContainerEventResponse& in) {
    runtime_event out;
    out.id = in.container_id();
    out.deleted = in.container_event_type() == cri::CONTAINER_DELETED_EVENT;
    if (in.has_pod_sandbox_status() && !in.pod_sandbox_status().id().empty()) {
        out.uid = in.pod_sandbox_status().metadata().uid();
        out.sandbox = to_view(in.pod_sandbox_status());
    }
    for (const auto& status : in.containers_statuses()) {
        out.containers.push_back(to_view(status));
        if (out.sandbox) out.containers.back().sandbox_id = out.sandbox->id;
        if (out.uid.empty()) out.uid = value(status.labels(), cri_label::pod_uid);
    }
    return out;
}

} // namespace

asio::awaitable<result<std::string>> run_sandbox(plugin_client& client, const pod_ref& pod,
                                                 const cri::RunPodSandboxRequest& request) {
    auto reply = co_await invoke<cri::RunPodSandboxResponse>(client, GANTRY_RUNTIME_OP(run_pod_sandbox), request, pod,
                                                             order::keyed, minutes(4));
    if (!reply) co_return std::move(reply).error();
    co_return reply->pod_sandbox_id();
}

asio::awaitable<result<sandbox_view>> sandbox_status(plugin_client& client, const pod_ref& pod, std::string id) {
    cri::PodSandboxStatusRequest request;
    request.set_pod_sandbox_id(id);
    auto reply = co_await invoke<cri::PodSandboxStatusResponse>(client, GANTRY_RUNTIME_OP(pod_sandbox_status), request,
                                                                pod, order::free);
    if (!reply) co_return std::move(reply).error();
    co_return to_view(reply->status());
}

asio::awaitable<result<void>> stop_sandbox(plugin_client& client, const pod_ref& pod, std::string id) {
    cri::StopPodSandboxRequest request;
    request.set_pod_sandbox_id(id);
    co_return gone(co_await invoke<cri::StopPodSandboxResponse>(client, GANTRY_RUNTIME_OP(stop_pod_sandbox), request, pod,
                                                                order::keyed));
}

asio::awaitable<result<void>> remove_sandbox(plugin_client& client, const pod_ref& pod, std::string id) {
    cri::RemovePodSandboxRequest request;
    request.set_pod_sandbox_id(id);
    co_return gone(co_await invoke<cri::RemovePodSandboxResponse>(client, GANTRY_RUNTIME_OP(remove_pod_sandbox), request,
                                                                  pod, order::keyed));
}

asio::awaitable<result<std::string>> create_container(plugin_client& client, const pod_ref& pod,
                                                      const cri::CreateContainerRequest& request) {
    auto reply = co_await invoke<cri::CreateContainerResponse>(client, GANTRY_RUNTIME_OP(create_container), request, pod,
                                                               order::keyed);
    if (!reply) co_return std::move(reply).error();
    co_return reply->container_id();
}

asio::awaitable<result<void>> start_container(plugin_client& client, const pod_ref& pod, std::string id) {
    cri::StartContainerRequest request;
    request.set_container_id(id);
    auto reply = co_await invoke<cri::StartContainerResponse>(client, GANTRY_RUNTIME_OP(start_container), request, pod,
                                                              order::keyed);
    if (!reply) co_return std::move(reply).error();
    co_return result<void>();
}

asio::awaitable<result<void>> stop_container(plugin_client& client, const pod_ref& pod, std::string id,
                                             std::chrono::seconds grace) {
    cri::StopContainerRequest request;
    request.set_container_id(id);
    request.set_timeout(grace.count());
    // Without a key: the containers of a pod end side by side.
    co_return gone(co_await invoke<cri::StopContainerResponse>(client, GANTRY_RUNTIME_OP(stop_container), request, pod,
                                                               order::free, usual + grace));
}

asio::awaitable<result<void>> remove_container(plugin_client& client, const pod_ref& pod, std::string id) {
    cri::RemoveContainerRequest request;
    request.set_container_id(id);
    co_return gone(co_await invoke<cri::RemoveContainerResponse>(client, GANTRY_RUNTIME_OP(remove_container), request,
                                                                 pod, order::keyed));
}

asio::awaitable<result<container_view>> container_status(plugin_client& client, const pod_ref& pod, std::string id) {
    cri::ContainerStatusRequest request;
    request.set_container_id(id);
    auto reply = co_await invoke<cri::ContainerStatusResponse>(client, GANTRY_RUNTIME_OP(container_status), request, pod,
                                                               order::free);
    if (!reply) co_return std::move(reply).error();
    co_return to_view(reply->status());
}

asio::awaitable<result<std::vector<listed_sandbox>>> list_sandboxes(plugin_client& client, const pod_ref& pod) {
    cri::ListPodSandboxRequest request;
    if (!pod.uid.empty()) (*request.mutable_filter()->mutable_label_selector())[cri_label::pod_uid] = pod.uid;
    auto reply = co_await invoke<cri::ListPodSandboxResponse>(client, GANTRY_RUNTIME_OP(list_pod_sandbox), request, pod,
                                                              order::keyed);
    if (!reply) co_return std::move(reply).error();
    std::vector<listed_sandbox> out;
    for (const auto& s : reply->items())
        out.push_back({s.id(), s.metadata().uid(), s.metadata().name(), s.metadata().namespace_(),
                       s.state() == cri::SANDBOX_READY});
    co_return out;
}

asio::awaitable<result<std::vector<listed_container>>> list_containers(plugin_client& client, const pod_ref& pod) {
    cri::ListContainersRequest request;
    if (!pod.uid.empty()) (*request.mutable_filter()->mutable_label_selector())[cri_label::pod_uid] = pod.uid;
    auto reply = co_await invoke<cri::ListContainersResponse>(client, GANTRY_RUNTIME_OP(list_containers), request, pod,
                                                              order::keyed);
    if (!reply) co_return std::move(reply).error();
    std::vector<listed_container> out;
    for (const auto& c : reply->containers())
        out.push_back({c.id(), c.pod_sandbox_id(), value(c.labels(), cri_label::pod_uid), phase_of(c.state())});
    co_return out;
}

asio::awaitable<result<void>> watch_events(plugin_client& client, std::function<void(runtime_event)> on_event) {
    call_options options;
    options.timeout = nanoseconds::max();
    options.on_item = [on_event = std::move(on_event)](op_reply item) {
        cri::ContainerEventResponse event;
        if (event.ParseFromString(item.bytes)) on_event(to_event(event));
    };
    op_request request;
    request.bytes = cri::GetEventsRequest().SerializeAsString();
    auto reply = co_await client.call(GANTRY_RUNTIME_OP(get_container_events), std::move(request), std::move(options));
    if (!reply) co_return std::move(reply).error();
    co_return result<void>();
}

asio::awaitable<result<std::string>> runtime_name(plugin_client& client) {
    const pod_ref none;
    const cri::VersionRequest request;
    auto reply =
        co_await invoke<cri::VersionResponse>(client, GANTRY_RUNTIME_OP(version), request, none, order::free);
    if (!reply) co_return std::move(reply).error();
    co_return reply->runtime_name();
}

asio::awaitable<result<std::optional<image_facts>>> image_status(plugin_client& client, const pod_ref& pod,
                                                                 std::string image) {
    cri::ImageStatusRequest request;
    request.mutable_image()->set_image(image);
    auto reply = co_await invoke<cri::ImageStatusResponse>(client, GANTRY_IMAGE_OP(image_status), request, pod,
                                                           order::free);
    if (!reply && reply.error().code == code::not_found) co_return std::optional<image_facts>();
    if (!reply) co_return std::move(reply).error();
    if (!reply->has_image() || reply->image().id().empty()) co_return std::optional<image_facts>();
    const auto& in = reply->image();
    image_facts out;
    out.id = in.id();
    out.ref = in.repo_digests().empty() ? in.id() : in.repo_digests(0);
    out.size = in.size();
    if (in.has_uid()) out.uid = in.uid().value();
    out.username = in.username();
    co_return std::optional<image_facts>(std::move(out));
}

asio::awaitable<result<void>> pull_image(plugin_client& client, const pod_ref& pod, std::string image) {
    cri::PullImageRequest request;
    request.mutable_image()->set_image(image);
    auto reply = co_await invoke<cri::PullImageResponse>(client, GANTRY_IMAGE_OP(pull_image), request, pod, order::free,
                                                         nanoseconds::max());
    if (!reply) co_return std::move(reply).error();
    co_return result<void>();
}

} // namespace gantry::core
