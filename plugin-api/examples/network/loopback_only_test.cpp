// Brings lo up in a real network namespace. Exit code 77 (skipped) where none can be made.
#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <thread>

#include "gantry/abi/draft/network.h"
#include "gantry/sdk/fake_host.h"

extern "C" const gantry_plugin_entry* gantry_plugin_main_loopback_only(void);

#define EXPECT(condition)                                                                                              \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                                       \
            std::exit(1);                                                                                              \
        }                                                                                                              \
    } while (false)

int main() {
    int netns = -1;
    std::thread([&] { // the namespace lives as long as the descriptor
        if (::unshare(CLONE_NEWNET) == 0) netns = ::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    }).join();
    if (netns < 0) return 77;

    gantry::fake::host host;
    gantry::fake::plugin plugin(host, gantry_plugin_main_loopback_only());
    EXPECT(plugin.start().ok());
    const auto* network = plugin.capability<gantry_network>(GANTRY_NETWORK);

    gantry::fake::message pod;
    pod.key = "c1";
    EXPECT(plugin.call(network->add, pod).error.code == GANTRY_INVALID);
    pod.fds = {netns};
    EXPECT(plugin.call(network->check, pod).error.code == GANTRY_UNAVAILABLE); // lo is born down
    const auto added = plugin.call(network->add, pod);
    EXPECT(added.ok());
    EXPECT(added.bytes.find("127.0.0.1/8") != std::string::npos);
    EXPECT(plugin.call(network->check, pod).ok());
    EXPECT(plugin.call(network->add, pod).bytes == added.bytes);
    EXPECT(plugin.call(network->del, pod).ok());
    pod.fds = {0}; // not a namespace
    EXPECT(plugin.call(network->add, pod).error.sys_errno == EINVAL);
    plugin.stop();
    EXPECT(host.misbehaviour().empty());
    ::close(netns);
}
