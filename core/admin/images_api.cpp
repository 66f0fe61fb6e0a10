#include <fcntl.h>

#include <set>

#include <boost/asio/experimental/awaitable_operators.hpp>

#include "base/unique_fd.hpp"
#include "core/admin/api.hpp"
#include "core/host/plugin_host.hpp"
#include "core/kernel/node.hpp"
#include "core/kernel/topic.hpp"
#include "gantry/abi/draft/image.h"
#include "gantry/abi/draft/runtime.h"
#include "proto/cri.pb.h"

namespace gantry::core::admin {

namespace asio = boost::asio;
using namespace boost::asio::experimental::awaitable_operators;

namespace {

error no_images() {
    return {.code = code::unavailable, .message = "no plugin of this node keeps images; bind a runtime such as cri-native"};
}

/// The image service beside the default runtime.
plugin_client* image_client(api& to) {
    plugin_client* runtime = to.host.runtime("");
    return runtime ? to.host.client_of(runtime->instance(), GANTRY_IMAGE) : nullptr;
}

template <class Message>
result<Message> parse(result<op_reply> reply) {
    if (!reply) return std::move(reply).error();
    Message message;
    if (!message.ParseFromString(reply->bytes))
        return error{.code = code::internal, .message = "the image plugin's reply is not a " + std::string(message.GetTypeName())};
    return message;
}

asio::awaitable<std::set<std::string>> images_in_use(api& to) {
    std::set<std::string> ids;
    op_request request;
    request.bytes = runtime::v1::ListContainersRequest().SerializeAsString();
    auto reply = co_await to.host.runtime("")->call(GANTRY_OP(GANTRY_RUNTIME, gantry_runtime, list_containers), std::move(request));
    auto list = parse<runtime::v1::ListContainersResponse>(std::move(reply));
    if (list)
        for (const auto& container : list->containers()) ids.insert(container.image_ref());
    co_return ids;
}

asio::awaitable<void> list_images(api& to, http_request, responder& answer) {
    plugin_client* images = image_client(to);
    if (!images) {
        co_await answer.fail(no_images());
        co_return;
    }
    const auto used = co_await images_in_use(to);
    op_request request;
    request.bytes = runtime::v1::ListImagesRequest().SerializeAsString();
    auto reply = co_await images->call(GANTRY_OP(GANTRY_IMAGE, gantry_image, list_images), std::move(request));
    auto list = parse<runtime::v1::ListImagesResponse>(std::move(reply));
    if (!list) {
        co_await answer.fail(list.error());
        co_return;
    }
    base::json::array items;
    for (const auto& image : list->images()) {
        base::json::array tags(image.repo_tags().begin(), image.repo_tags().end());
        base::json::array digests(image.repo_digests().begin(), image.repo_digests().end());
        items.push_back(base::json::object{{"id", image.id()},
                                           {"repoTags", std::move(tags)},
                                           {"repoDigests", std::move(digests)},
                                           {"size", image.size()},
                                           {"pinned", image.pinned()},
                                           {"inUse", used.contains(image.id())}});
    }
    const base::json::object result{{"items", std::move(items)}};
    co_await answer.json(result);
}

asio::awaitable<void> remove_image(api& to, http_request request, responder& answer) {
    plugin_client* images = image_client(to);
    if (!images) {
        co_await answer.fail(no_images());
        co_return;
    }
    const std::string ref = request.params["ref"];
    runtime::v1::ImageStatusRequest status_message;
    status_message.mutable_image()->set_image(ref);
    op_request status_request;
    status_request.bytes = status_message.SerializeAsString();
    auto status_reply = co_await images->call(GANTRY_OP(GANTRY_IMAGE, gantry_image, image_status), std::move(status_request));
    auto status = parse<runtime::v1::ImageStatusResponse>(std::move(status_reply));
    if (status && !status->has_image())
        status = error{.code = code::not_found, .message = "no image \"" + ref + "\"; `gantry images` lists what there is"};
    if (!status) {
        co_await answer.fail(status.error());
        co_return;
    }
    runtime::v1::RemoveImageRequest message;
    message.mutable_image()->set_image(ref);
    op_request remove_request;
    remove_request.bytes = message.SerializeAsString();
    auto removed = co_await images->call(GANTRY_OP(GANTRY_IMAGE, gantry_image, remove_image), std::move(remove_request));
    const base::json::object done;
    if (removed)
        co_await answer.json(done);
    else
        co_await answer.fail(removed.error());
}

struct load_request {
    base::unique_fd archive;
    std::string ref;
};

result<load_request> parse_load(const std::string& body) {
    GANTRY_TRY(const auto json, base::parse_json(body, "load request"));
    const auto* object = json.if_object();
    const auto* path = object ? object->if_contains("path") : nullptr;
    if (!path || !path->is_string() || !path->get_string().starts_with('/'))
        return error{.code = code::invalid, .message = "load request: path: must be an absolute path of this machine"};
    load_request request;
    const std::string name(path->get_string());
    // O_NONBLOCK: a FIFO in the archive's place must not hold the loop.
    request.archive.reset(::open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (!request.archive) return sys_error("open " + name, errno);
    request.ref = base::string_at(*object, "ref");
    return request;
}

/// Sends the latest progress of each layer; ends at the item without a name. It is not cancelled while the client is there:
/// that could cut a chunk in half.
asio::awaitable<void> send_progress(topic<op_progress>& progress, responder& answer) {
    auto changes = progress.subscribe();
    for (;;) {
        const auto next = co_await changes->next();
        if (!next || next->key.empty()) co_return;
        const base::json::object line{
            {"progress", {{"what", next->state->what}, {"done", next->state->done}, {"total", next->state->total}}}};
        co_await answer.write(base::to_text(line) + "\n");
    }
}

asio::awaitable<result<op_reply>> run_load(plugin_client& images, op_request call, topic<op_progress>& progress) {
    call_options how;
    how.timeout = std::chrono::minutes(30);
    how.on_progress = [&progress](const op_progress& p) {
        if (!p.what.empty()) progress.publish(p.what, p);
    };
    auto reply = co_await images.call(GANTRY_OP(GANTRY_IMAGE, gantry_image, load), std::move(call), std::move(how));
    progress.publish("", {});
    co_return reply;
}

/// Streams {"progress": {...}} lines, then {"images": [...]} or {"error": {...}}.
asio::awaitable<void> load_image(api& to, http_request request, responder& answer) {
    plugin_client* images = image_client(to);
    result<load_request> wanted = images ? parse_load(request.body) : result<load_request>(no_images());
    if (!wanted) {
        co_await answer.fail(wanted.error());
        co_return;
    }
    co_await answer.begin_stream("application/x-ndjson");

    const base::json::object options{{"ref", wanted->ref}};
    op_request call;
    call.bytes = base::to_text(options);
    call.fds = {wanted->archive.get()};
    topic<op_progress> progress(to.loop.get_executor());
    auto outcome = co_await ((run_load(*images, std::move(call), progress) && send_progress(progress, answer)) || answer.closed());
    if (outcome.index() != 0) co_return; // the client left: the load is cancelled and leaves nothing
    auto& reply = std::get<0>(outcome);
    std::string last = reply ? reply->bytes : std::string{};
    if (!reply) {
        const base::json::object fault{{"error", {{"code", to_string(reply.error().code)}, {"message", reply.error().message}}}};
        last = base::to_text(fault);
    }
    co_await answer.write(last + "\n");
}

} // namespace

void add_image_routes(router& routes, api& to) {
    routes.add("GET", "/v1/images", bound(list_images, to));
    routes.add("POST", "/v1/images/load", bound(load_image, to));
    routes.add("DELETE", "/v1/images/{ref...}", bound(remove_image, to));
}

} // namespace gantry::core::admin
