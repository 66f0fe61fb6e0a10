// Drives the plugin as gantry would, with the fake host of the SDK. Any test framework will do; this needs none.
#include <cstdio>
#include <cstdlib>

#include "gantry/abi/draft/network.h"
#include "gantry/sdk/fake_host.h"

extern "C" const gantry_plugin_entry* gantry_plugin_main_acme_net(void);

#define EXPECT(condition)                                                                                              \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                                       \
            std::exit(1);                                                                                              \
        }                                                                                                              \
    } while (false)

int main() {
    gantry::fake::host host;
    gantry::fake::plugin plugin(host, gantry_plugin_main_acme_net());
    EXPECT(plugin.start().ok());
    const auto* network = plugin.capability<gantry_network>(GANTRY_NETWORK);
    EXPECT(network != nullptr);

    gantry::fake::message add;
    add.bytes = R"({"containerID":"c1","ifname":"eth0"})";
    add.key = "c1";
    EXPECT(plugin.call(network->add, add).error.code == GANTRY_INVALID); // no namespace
    add.fds = {0};
    EXPECT(plugin.call(network->add, add).ok());
    EXPECT(plugin.call(network->add, add).ok()); // idempotent
    EXPECT(host.metric("acme_net_added_total") == 2);

    gantry::fake::message known;
    known.key = "c1";
    EXPECT(plugin.call(network->check, known).ok());
    EXPECT(plugin.call(network->gc).ok());
    EXPECT(plugin.call(network->status).ok());
    EXPECT(plugin.call(network->del, known).ok());
    EXPECT(plugin.call(network->del, known).ok());
    EXPECT(plugin.call(network->check, known).error.code == GANTRY_NOT_FOUND);

    plugin.stop();
    EXPECT(host.misbehaviour().empty());
}
