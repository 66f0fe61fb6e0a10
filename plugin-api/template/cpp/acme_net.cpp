// acme-net: a network plugin to start from. It connects nothing: every pod gets an empty result and keeps its own
// namespace as it is. What it shows: config, operations in their three forms, state that survives a restart, a metric.
#include <string>
#include <string_view>

#include "gantry/abi/draft/network.h"
#include "gantry/sdk/plugin.hpp"

namespace {

namespace sdk = gantry::sdk;
using gantry::result;

class acme_net {
public:
    // Calls no peer and blocks on nothing: the host watches how long it takes.
    result<void> init(sdk::host& host) {
        host_ = &host;
        GANTRY_CHECK(host.require({GANTRY_SERVICE_STATE, GANTRY_SERVICE_METRICS}));
        GANTRY_TRY(added_, host.counter("acme_net_added_total", "Pods that were added."));
        host.info("ready", {{"config", host.config_json()}});
        return {};
    }

    // A blocking operation: on a worker thread, until op.deadline() at most. request.fds[0] is the network namespace.
    // CNI makes ADD idempotent, so what was done is remembered under the container's id, the request's key.
    result<sdk::reply> add(const sdk::request& request, sdk::op& op) {
        if (request.fds.empty())
            return gantry::error{.code = gantry::code::invalid,
                                 .message = "ADD of container " + request.key + ": the network namespace is missing"};
        op.step("remember");
        GANTRY_CHECK(host_->put(request.key, "added"));
        added_.record(1);
        return sdk::reply{.bytes = R"({"cniVersion":"1.1.0","interfaces":[],"ips":[]})"};
    }

    // Succeeds when nothing is left to delete.
    result<sdk::reply> del(const sdk::request& request, sdk::op&) {
        GANTRY_CHECK(host_->erase(request.key));
        return sdk::reply{.bytes = "{}"};
    }

    result<sdk::reply> check(const sdk::request& request, sdk::op&) {
        GANTRY_CHECK(host_->get(request.key)); // the error says that the container is not known
        return sdk::reply{.bytes = "{}"};
    }

    // A coroutine on the instance's lane: it must not block, and hands to a worker what might.
    sdk::task<result<sdk::reply>> gc(sdk::request, sdk::op) {
        GANTRY_CO_TRY(const auto known, co_await host_->work([this] { return host_->keys(); }));
        host_->debug("gc", {{"known", std::to_string(known.size())}});
        co_return sdk::reply{.bytes = "{}"};
    }

    // On the lane, completed by hand: at once here, or later from any thread.
    void status(sdk::request, sdk::op op) { op.complete(sdk::reply{.bytes = "{}"}); }

    static const void* capability(std::string_view id) {
        static constexpr auto network = sdk::capability<gantry_network>([](auto& table) {
            table.add = sdk::op_fn<&acme_net::add>;
            table.del = sdk::op_fn<&acme_net::del>;
            table.check = sdk::op_fn<&acme_net::check>;
            table.status = sdk::op_fn<&acme_net::status>;
            table.gc = sdk::op_fn<&acme_net::gc>;
        });
        return id == GANTRY_NETWORK ? &network : nullptr;
    }

private:
    sdk::host* host_ = nullptr;
    sdk::metric added_;
};

} // namespace

// clang-format off
GANTRY_PLUGIN(acme_net, {
    "id": "com.example.acme-net",
    "name": "acme-net",
    "version": "1.0.0",
    "vendor": "Example Ltd",
    "license": "Apache-2.0",
    "description": "Connects nothing",
    "capabilities": ["gantry.network/1-draft"],
    "services": ["gantry.state/1", "gantry.metrics/1"],
    "config": {
        "type": "object",
        "additionalProperties": false,
        "properties": {"mtu": {"type": "integer", "minimum": 576, "maximum": 65535, "default": 1500}}
    }
})
