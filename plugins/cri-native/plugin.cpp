// cri-native: registration. Binds the operations of gantry.runtime and gantry.image to the runtime behind them.
#include "gantry/sdk/plugin.hpp"

#include <memory>

#include "gantry/abi/draft/image.h"
#include "gantry/abi/draft/network.h"
#include "gantry/abi/draft/runtime.h"
#include "plugins/cri-native/runtime/engine.hpp"
#include "plugins/cri-native/runtime/image_ops.hpp"
#include "plugins/cri-native/runtime/settings.hpp"

namespace gantry::cri_native {

namespace {

template <class Message>
result<Message> parsed(const std::string& bytes) {
    Message message;
    if (!message.ParseFromString(bytes))
        return error{.code = code::invalid, .message = "the request is no " + message.GetTypeName() + " of CRI v1"};
    return message;
}

template <class Message>
result<sdk::reply> serialised(const result<Message>& response) {
    if (!response) return response.error();
    sdk::reply reply;
    if (!response->SerializeToString(&reply.bytes))
        return error{.code = code::internal, .message = "cannot serialise " + response->GetTypeName()};
    return reply;
}

template <class Method>
struct types_of;
template <class Response, class Request>
struct types_of<op_task<Response> (engine::*)(Request, sdk::op)> {
    using request = Request;
    using response = Response;
};
template <class Response, class Request>
struct types_of<result<Response> (*)(images::image_store&, const Request&)> {
    using request = Request;
    using response = Response;
};

template <auto Method>
sdk::task<void> run(engine& runtime, std::string bytes, sdk::op op) {
    auto request = parsed<typename types_of<decltype(Method)>::request>(bytes);
    if (!request) co_return op.complete(request.error());
    const auto ready = co_await runtime.ready();
    if (!ready) co_return op.complete(ready.error());
    const auto response = co_await (runtime.*Method)(*std::move(request), op);
    op.complete(serialised(response));
}

template <auto Function>
sdk::task<void> run_image(engine& runtime, sdk::host host, std::string bytes, sdk::op op) {
    auto request = parsed<typename types_of<decltype(Function)>::request>(bytes);
    if (!request) co_return op.complete(request.error());
    const auto ready = co_await runtime.ready();
    if (!ready) co_return op.complete(ready.error());
    const auto response = co_await host.work([&] { return Function(runtime.image_store(), *request); });
    op.complete(serialised(response));
}

sdk::task<void> run_load(engine& runtime, sdk::host host, sdk::request request, sdk::op op) {
    const auto ready = co_await runtime.ready();
    if (!ready) co_return op.complete(ready.error());
    if (request.fds.size() != 1)
        co_return op.complete(error{.code = code::invalid, .message = "load needs one descriptor: the archive"});
    auto loaded =
        co_await host.work([&] { return load_images(runtime.image_store(), request.bytes, request.fds[0].get(), op); });
    if (!loaded) co_return op.complete(loaded.error());
    sdk::reply reply;
    reply.bytes = *std::move(loaded);
    op.complete(std::move(reply));
}

sdk::task<void> run_exec(engine& runtime, sdk::request request, sdk::op op) {
    auto message = parsed<cri::ExecRequest>(request.bytes);
    if (!message) co_return op.complete(message.error());
    const auto ready = co_await runtime.ready();
    if (!ready) co_return op.complete(ready.error());
    const auto code = co_await runtime.exec_stream(*std::move(message), std::move(request.fds), op);
    if (!code) co_return op.complete(code.error());
    sdk::reply reply;
    reply.bytes = "{\"exitCode\":" + std::to_string(*code) + "}";
    op.complete(std::move(reply));
}

sdk::task<void> run_attach(engine& runtime, sdk::request request, sdk::op op) {
    auto message = parsed<cri::AttachRequest>(request.bytes);
    if (!message) co_return op.complete(message.error());
    const auto ready = co_await runtime.ready();
    if (!ready) co_return op.complete(ready.error());
    const auto ended = co_await runtime.attach_stream(*std::move(message), std::move(request.fds), op);
    if (!ended) co_return op.complete(ended.error());
    op.complete(sdk::reply{});
}

sdk::task<void> run_port_forward(engine& runtime, sdk::request request, sdk::op op) {
    auto message = parsed<cri::PortForwardRequest>(request.bytes);
    if (!message) co_return op.complete(message.error());
    const auto ready = co_await runtime.ready();
    if (!ready) co_return op.complete(ready.error());
    if (request.fds.size() != 1)
        co_return op.complete(error{.code = code::invalid, .message = "port_forward needs one descriptor: the stream"});
    const auto ended = co_await runtime.port_forward(*std::move(message), std::move(request.fds[0]), op);
    if (!ended) co_return op.complete(ended.error());
    op.complete(sdk::reply{});
}

sdk::task<void> run_events(engine& runtime, sdk::op op) {
    const auto ready = co_await runtime.ready();
    if (!ready) co_return op.complete(ready.error());
    const auto ended = co_await runtime.container_events(op);
    op.complete(ended ? error{.code = code::cancelled, .message = "the stream of events has ended"} : ended.error());
}

} // namespace

/// Operations run in coroutines of their own rather than in the op's: a caller that gives up must not interrupt a
/// clean-up.
class plugin {
public:
    result<void> init(sdk::host& host) {
        GANTRY_CHECK(host.require({GANTRY_SERVICE_FD, GANTRY_SERVICE_TIMER, GANTRY_SERVICE_PEER, GANTRY_SERVICE_EXEC}));
        GANTRY_TRY(auto settings, parse_settings(host.config_json()));
        host_ = host;
        engine_ = std::make_unique<engine>(host, std::move(settings));
        return {};
    }
    result<void> activate() {
        host_->launch(engine_->start());
        return {};
    }

    template <auto Method>
    void serve(sdk::request request, sdk::op op) {
        host_->launch(run<Method>(*engine_, std::move(request.bytes), std::move(op)));
    }
    template <auto Function>
    void serve_image(sdk::request request, sdk::op op) {
        host_->launch(run_image<Function>(*engine_, *host_, std::move(request.bytes), std::move(op)));
    }
    void load(sdk::request request, sdk::op op) {
        host_->launch(run_load(*engine_, *host_, std::move(request), std::move(op)));
    }
    void exec_stream(sdk::request request, sdk::op op) {
        host_->launch(run_exec(*engine_, std::move(request), std::move(op)));
    }
    void attach_stream(sdk::request request, sdk::op op) {
        host_->launch(run_attach(*engine_, std::move(request), std::move(op)));
    }
    void port_forward(sdk::request request, sdk::op op) {
        host_->launch(run_port_forward(*engine_, std::move(request), std::move(op)));
    }
    void get_container_events(sdk::request, sdk::op op) { host_->launch(run_events(*engine_, std::move(op))); }

    static const void* capability(std::string_view id);

private:
    std::optional<sdk::host> host_;
    std::unique_ptr<engine> engine_;
};

const void* plugin::capability(std::string_view id) {
    static constexpr auto runtime_table = sdk::capability<gantry_runtime>([](auto& table) {
        table.version = sdk::op_fn<&plugin::serve<&engine::version>>;
        table.run_pod_sandbox = sdk::op_fn<&plugin::serve<&engine::run_pod_sandbox>>;
        table.stop_pod_sandbox = sdk::op_fn<&plugin::serve<&engine::stop_pod_sandbox>>;
        table.remove_pod_sandbox = sdk::op_fn<&plugin::serve<&engine::remove_pod_sandbox>>;
        table.pod_sandbox_status = sdk::op_fn<&plugin::serve<&engine::pod_sandbox_status>>;
        table.list_pod_sandbox = sdk::op_fn<&plugin::serve<&engine::list_pod_sandbox>>;
        table.create_container = sdk::op_fn<&plugin::serve<&engine::create_container>>;
        table.start_container = sdk::op_fn<&plugin::serve<&engine::start_container>>;
        table.stop_container = sdk::op_fn<&plugin::serve<&engine::stop_container>>;
        table.remove_container = sdk::op_fn<&plugin::serve<&engine::remove_container>>;
        table.list_containers = sdk::op_fn<&plugin::serve<&engine::list_containers>>;
        table.container_status = sdk::op_fn<&plugin::serve<&engine::container_status>>;
        table.update_container_resources = sdk::op_fn<&plugin::serve<&engine::update_container_resources>>;
        table.reopen_container_log = sdk::op_fn<&plugin::serve<&engine::reopen_container_log>>;
        table.exec_sync = sdk::op_fn<&plugin::serve<&engine::exec_sync>>;
        table.exec_stream = sdk::op_fn<&plugin::exec_stream>;
        table.attach_stream = sdk::op_fn<&plugin::attach_stream>;
        table.port_forward = sdk::op_fn<&plugin::port_forward>;
        table.container_stats = sdk::op_fn<&plugin::serve<&engine::container_stats>>;
        table.list_container_stats = sdk::op_fn<&plugin::serve<&engine::list_container_stats>>;
        table.status = sdk::op_fn<&plugin::serve<&engine::status>>;
        table.get_container_events = sdk::op_fn<&plugin::get_container_events>;
        table.update_runtime_config = sdk::op_fn<&plugin::serve<&engine::update_runtime_config>>;
    });
    static constexpr auto image_table = sdk::capability<gantry_image>([](auto& table) {
        table.list_images = sdk::op_fn<&plugin::serve_image<&list_images>>;
        table.image_status = sdk::op_fn<&plugin::serve_image<&image_status>>;
        table.pull_image = sdk::op_fn<&plugin::serve_image<&pull_image>>;
        table.remove_image = sdk::op_fn<&plugin::serve_image<&remove_image>>;
        table.image_fs_info = sdk::op_fn<&plugin::serve_image<&image_fs_info>>;
        table.load = sdk::op_fn<&plugin::load>;
    });
    if (id == GANTRY_RUNTIME) return &runtime_table;
    if (id == GANTRY_IMAGE) return &image_table;
    return nullptr;
}

} // namespace gantry::cri_native

GANTRY_PLUGIN(gantry::cri_native::plugin, {
    "id" : "dev.gantry.cri-native",
    "name" : "cri-native",
    "version" : "0.1.0",
    "vendor" : "gantry",
    "license" : "Apache-2.0",
    "description" : "runs pods itself: namespaces, cgroups v1 and v2, overlay, OCI images",
    "capabilities" : [ "gantry.runtime/1-draft", "gantry.image/1-draft" ],
    "requires" : ["gantry.network/1-draft"],
    "services" : [
        "gantry.op/1", "gantry.executor/1", "gantry.config/1", "gantry.fd/1", "gantry.timer/1", "gantry.peer/1",
        "gantry.exec/1"
    ],
    "maxConcurrency" : 256,
    "config" : {
        "type" : "object",
        "additionalProperties" : false,
        "properties" : {
            "imageDir" : {"type" : "string", "pattern" : "^/.+"},
            "helperDir" : {"type" : "string", "pattern" : "^/.+"},
            "openFiles" : {"type" : "integer", "minimum" : 64, "maximum" : 1073741816, "default" : 1048576},
            "shmSizeMiB" : {"type" : "integer", "minimum" : 1, "maximum" : 1048576, "default" : 64}
        }
    }
})
