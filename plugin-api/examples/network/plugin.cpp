// loopback-only: pods that talk to nobody, not even to each other, but may listen on 127.0.0.1. For batch jobs that must
// not have a network, and the smallest useful answer to CNI 1.1.
#include <string_view>

#include "gantry/abi/draft/network.h"
#include "gantry/sdk/plugin.hpp"
#include "loopback.hpp"

namespace loopback_only {
namespace {

using gantry::code;
using gantry::error;
using gantry::result;
namespace sdk = gantry::sdk;

// CNI 1.1 section 5: interface 0 is lo, and each address names its interface.
constexpr const char* added = R"({"cniVersion":"1.1.0","interfaces":[{"name":"lo","mac":"00:00:00:00:00:00"}],)"
                              R"("ips":[{"address":"127.0.0.1/8","interface":0},{"address":"::1/128","interface":0}]})";

class plugin {
public:
    result<void> init(sdk::host&) { return {}; }

    result<sdk::reply> add(const sdk::request& request, sdk::op&) {
        GANTRY_TRY(const int netns, namespace_of(request));
        GANTRY_CHECK(bring_up(netns)); // idempotent: a link that is up stays up
        return sdk::reply{.bytes = added};
    }
    /// lo goes with its namespace: there is nothing to take away and nothing to remember.
    result<sdk::reply> del(const sdk::request&, sdk::op&) { return sdk::reply{.bytes = "{}"}; }
    result<sdk::reply> check(const sdk::request& request, sdk::op&) {
        GANTRY_TRY(const int netns, namespace_of(request));
        GANTRY_TRY(const bool up, is_up(netns));
        if (up) return sdk::reply{.bytes = "{}"};
        return error{.code = code::unavailable, .message = "link lo of container " + request.key + " is down"};
    }
    result<sdk::reply> nothing(const sdk::request&, sdk::op&) { return sdk::reply{.bytes = "{}"}; }

    static const void* capability(std::string_view id) {
        static constexpr auto network = sdk::capability<gantry_network>([](auto& table) {
            table.add = sdk::op_fn<&plugin::add>;
            table.del = sdk::op_fn<&plugin::del>;
            table.check = sdk::op_fn<&plugin::check>;
            table.status = sdk::op_fn<&plugin::nothing>;
            table.gc = sdk::op_fn<&plugin::nothing>;
        });
        return id == GANTRY_NETWORK ? &network : nullptr;
    }

private:
    static result<int> namespace_of(const sdk::request& request) {
        if (!request.fds.empty()) return request.fds.front().get();
        return error{.code = code::invalid,
                     .message = "container " + request.key + ": the request carries no network namespace in fds[0]",
                     .detail = R"({"cniCode": "4"})"};
    }
};

} // namespace
} // namespace loopback_only

// clang-format off
GANTRY_PLUGIN(loopback_only::plugin, {
    "id": "dev.gantry.example.loopback-only",
    "name": "loopback-only",
    "version": "1.0.0",
    "license": "Apache-2.0",
    "description": "Pods with nothing but lo",
    "capabilities": ["gantry.network/1-draft"],
    "config": {"type": "object", "additionalProperties": false}
})
