#include <cstdio>
#include <cstdlib>
#include <string>

#include "gantry/abi/draft/pod_source.h"
#include "gantry/sdk/fake_host.h"

extern "C" const gantry_plugin_entry* gantry_plugin_main_one_pod(void);

#define EXPECT(condition)                                                                                              \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                                       \
            std::exit(1);                                                                                              \
        }                                                                                                              \
    } while (false)

int main() {
    {
        gantry::fake::host host;
        gantry::fake::plugin plugin(host, gantry_plugin_main_one_pod());
        EXPECT(plugin.start().error.code == GANTRY_INVALID); // no pod
    }
    gantry::fake::settings with;
    with.config = R"({"pod":{"metadata":{"name":"kiosk","uid":"u1"},"spec":{"containers":[]}}})";
    gantry::fake::host host(with);
    gantry::fake::plugin plugin(host, gantry_plugin_main_one_pod());
    EXPECT(plugin.start().ok());
    const auto* source = plugin.capability<gantry_pod_source>(GANTRY_POD_SOURCE);
    const auto watch = plugin.begin(source->watch);
    gantry::fake::outcome item;
    EXPECT(plugin.next_item(watch, item));
    EXPECT(item.bytes == R"({"type": "ADD", "pod": {"metadata":{"name":"kiosk","uid":"u1"},"spec":{"containers":[]}}})");
    EXPECT(plugin.next_item(watch, item));
    EXPECT(item.bytes == R"({"type": "SYNCED"})");
    EXPECT(!host.operations().completed(watch));
    plugin.cancel(watch);
    EXPECT(plugin.wait(watch).error.code == GANTRY_CANCELLED);
    plugin.stop();
    EXPECT(host.misbehaviour().empty());
}
