// one-pod: a pod source for appliances. The node runs the one pod that stands in the plugin's config, and nothing else.
#include <string>
#include <string_view>

#include "gantry/abi/draft/pod_source.h"
#include "gantry/sdk/plugin.hpp"

namespace {

using gantry::code;
using gantry::error;
using gantry::result;
namespace sdk = gantry::sdk;

class one_pod {
public:
    result<void> init(sdk::host& host) {
        host_ = &host;
        // The schema allows one key, "pod", so its value is what lies between the first colon and the last brace.
        const auto config = host.config_json();
        const auto colon = config.find(':');
        const auto brace = config.rfind('}');
        if (colon == std::string_view::npos || brace < colon)
            return error{.code = code::invalid, .message = "config of one-pod: key \"pod\" is missing", .detail = R"({"field": "pod"})"};
        add_ = R"({"type": "ADD", "pod": )" + std::string(config.substr(colon + 1, brace - colon - 1)) + '}';
        return {};
    }

    // The stream starts with the whole state and stays open until the host cancels it.
    sdk::task<result<sdk::reply>> watch(sdk::request, sdk::op op) {
        GANTRY_CO_CHECK(co_await host_->send(op, add_));
        GANTRY_CO_CHECK(co_await host_->send(op, R"({"type": "SYNCED"})"));
        while (co_await host_->sleep(std::chrono::hours(24))) {}
        co_return op.cancelled_error();
    }

    static const void* capability(std::string_view id) {
        static constexpr auto source =
            sdk::capability<gantry_pod_source>([](auto& table) { table.watch = sdk::op_fn<&one_pod::watch>; });
        return id == GANTRY_POD_SOURCE ? &source : nullptr;
    }

private:
    sdk::host* host_ = nullptr;
    std::string add_; ///< the one item
};

} // namespace

// clang-format off
GANTRY_PLUGIN(one_pod, {
    "id": "dev.gantry.example.one-pod",
    "name": "one-pod",
    "version": "1.0.0",
    "license": "Apache-2.0",
    "description": "Runs the pod that stands in its config",
    "capabilities": ["gantry.pod-source/1-draft"],
    "config": {
        "type": "object",
        "additionalProperties": false,
        "required": ["pod"],
        "properties": {
            "pod": {
                "type": "object",
                "required": ["apiVersion", "kind", "metadata", "spec"],
                "properties": {
                    "apiVersion": {"enum": ["v1"]},
                    "kind": {"enum": ["Pod"]},
                    "metadata": {
                        "type": "object",
                        "required": ["name", "namespace", "uid"],
                        "properties": {"name": {"type": "string"}, "namespace": {"type": "string"}, "uid": {"type": "string"}}
                    },
                    "spec": {"type": "object", "required": ["containers"]}
                }
            }
        }
    }
})
