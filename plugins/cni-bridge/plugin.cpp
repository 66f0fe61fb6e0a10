// cni-bridge: registration, and JSON in and out. What it does is in network.hpp, when in service.hpp.
#include <gantry/sdk/plugin.hpp>

#include <gantry/abi/draft/network.h>

#include <random>

#include "plugins/cni-bridge/cni.hpp"
#include "plugins/cni-bridge/cni_error.hpp"
#include "plugins/cni-bridge/service.hpp"

namespace gantry::cni_bridge {

namespace {

class plugin {
public:
    result<void> init(sdk::host& host) {
        host_ = &host;
        GANTRY_TRY(config_, parse_settings(host.config_json()));
        return {};
    }

    result<void> activate() {
        network::environment env{.who = {std::string(host_->node_instance()), std::string(host_->instance())},
                                 .state_dir = std::string(host_->state_dir()),
                                 .seed = std::random_device()(),
                                 .log = {}};
        GANTRY_TRY(service_, service::start(std::move(config_), std::move(env),
                                            [host = *host_](bool failed, std::string_view line) {
                                                failed ? host.error(line) : host.info(line);
                                            }));
        return {};
    }

    void stop() { service_.reset(); }

    void add(sdk::request request, sdk::op op) {
        with_attachment(std::move(request), std::move(op), true,
                        [](network& net, const add_request& pod, const sdk::op& op) -> result<sdk::reply> {
                            GANTRY_TRY(const auto made, net.add(pod, [&](std::string_view step) { op.step(step); }));
                            return sdk::reply{.bytes = result_of(made, net.link())};
                        });
    }

    void del(sdk::request request, sdk::op op) {
        with_attachment(
            std::move(request), std::move(op), false,
            [](network& net, const add_request& pod, const sdk::op& op) -> result<sdk::reply> {
                GANTRY_CHECK(net.del({pod.container_id, pod.ifname}, [&](std::string_view step) { op.step(step); }));
                return sdk::reply{};
            });
    }

    void check(sdk::request request, sdk::op op) {
        with_attachment(std::move(request), std::move(op), true,
                        [](network& net, const add_request& pod, const sdk::op&) -> result<sdk::reply> {
                            GANTRY_CHECK(net.check({pod.container_id, pod.ifname}, pod.netns));
                            return sdk::reply{};
                        });
    }

    void status(sdk::request, sdk::op op) {
        post(std::move(op), [](network& net, const sdk::op&) -> result<sdk::reply> {
            GANTRY_CHECK(net.status());
            return sdk::reply{.bytes = "{}"};
        });
    }

    void gc(sdk::request request, sdk::op op) {
        auto valid = parse_valid_attachments(request.bytes);
        if (!valid) return op.complete(std::move(valid).error());
        post(std::move(op), [valid = *std::move(valid)](network& net, const sdk::op&) -> result<sdk::reply> {
            GANTRY_CHECK(net.gc(valid));
            return sdk::reply{};
        });
    }

    static const void* capability(std::string_view id) {
        static constexpr auto table = sdk::capability<gantry_network>([](auto& t) {
            t.add = sdk::op_fn<&plugin::add>;
            t.del = sdk::op_fn<&plugin::del>;
            t.check = sdk::op_fn<&plugin::check>;
            t.status = sdk::op_fn<&plugin::status>;
            t.gc = sdk::op_fn<&plugin::gc>;
        });
        return id == GANTRY_NETWORK ? &table : nullptr;
    }

private:
    /// Completes op with what f returns on the service's thread, unless the caller gave up before its turn came.
    template <class F>
    void post(sdk::op op, F f) {
        if (!service_)
            return op.complete(
                cni_error(code::unavailable, cni_code::unavailable, "cni-bridge is stopping or not active yet"));
        service_->post([op = std::move(op), f = std::move(f)](network& net) {
            if (op.cancelled()) return op.complete(op.cancelled_error());
            try {
                op.complete(f(net, op));
            } catch (const std::exception& fault) {
                op.complete(
                    cni_error(code::internal, cni_code::io_failure, std::string("cni-bridge: ") + fault.what()));
            }
        });
    }

    template <class F>
    void with_attachment(sdk::request request, sdk::op op, bool needs_netns, F f) {
        auto pod = parse_request(request.bytes);
        if (!pod) return op.complete(std::move(pod).error());
        if (needs_netns && request.fds.empty())
            return op.complete(
                cni_error(code::invalid, cni_code::invalid_parameters,
                          "the request for container " + pod->container_id + " lacks its network namespace (fds[0])"));
        const auto fds = std::make_shared<std::vector<sdk::fd>>(std::move(request.fds));
        if (!fds->empty()) pod->netns = fds->front().get();
        post(std::move(op),
             [pod = *std::move(pod), fds, f](network& net, const sdk::op& op) { return f(net, pod, op); });
    }

    sdk::host* host_ = nullptr;
    settings config_;
    std::unique_ptr<service> service_;
};

} // namespace

} // namespace gantry::cni_bridge

// clang-format off
GANTRY_PLUGIN(gantry::cni_bridge::plugin, {
  "id": "dev.gantry.cni-bridge",
  "name": "cni-bridge",
  "version": "0.1.0",
  "vendor": "gantry",
  "license": "Apache-2.0",
  "description": "Pod network by bridge, in process: IPAM, host ports and masquerading over netlink",
  "capabilities": ["gantry.network/1-draft"],
  "requires": [],
  "services": ["gantry.config/1"],
  "maxConcurrency": 256,
  "config": {
    "type": "object",
    "additionalProperties": false,
    "properties": {
      "subnet": {"type": "string", "default": "10.88.0.0/16"},
      "gateway": {"type": "string", "default": ""},
      "rangeStart": {"type": "string", "default": ""},
      "rangeEnd": {"type": "string", "default": ""},
      "subnet6": {"type": "string", "default": ""},
      "gateway6": {"type": "string", "default": ""},
      "rangeStart6": {"type": "string", "default": ""},
      "rangeEnd6": {"type": "string", "default": ""},
      "mtu": {"type": "integer", "minimum": 0, "maximum": 65535, "default": 0},
      "masquerade": {"type": "boolean", "default": true},
      "nonMasqueradeCIDRs": {"type": "array", "items": {"type": "string"}, "default": []},
      "isolate": {"type": "boolean", "default": false}
    }
  }
})
// clang-format on
