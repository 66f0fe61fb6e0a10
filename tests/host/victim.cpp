// A node that a plugin may bring down: victim STATE_DIR RUN_DIR INSTANCE INIT OPERATION. Prints the state of each plugin after
// start and the outcome of OPERATION on "mis"; exits 0 if it comes to its end. "mis" is mischief with `init: INIT` in its
// configuration, or, for "use NAME", the network plugin NAME, whose add is called then.
#include <cstdio>
#include <cstring>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>

#include "core/host/plugin_host.hpp"
#include "gantry/abi/draft/network.h"

namespace {

using namespace gantry;
using namespace gantry::core;

boost::asio::awaitable<void> live(plugin_host& host, std::string operation, bool enable) {
    const auto started = co_await host.start();
    if (!started) std::printf("start: %s\n", started.error().message.c_str());
    if (enable) {
        const auto enabled = co_await host.enable("mis");
        std::printf("enable: %s\n", enabled ? "ok" : enabled.error().message.c_str());
    }
    for (const auto& one : host.plugins())
        std::printf("%s: %s %s\n", one.name.c_str(), std::string(to_string(one.state)).c_str(), one.reason.c_str());
    std::fflush(stdout);
    if (!operation.empty()) {
        op_request request;
        request.bytes = operation;
        const op_ref run{"com.acme.mischief/1", "run", 8};
        const op_ref add = GANTRY_OP(GANTRY_NETWORK, gantry_network, add);
        auto* mischief = host.client_of("mis", run.capability);
        auto* client = mischief ? mischief : host.client_of("mis", add.capability);
        const op_ref op = mischief ? run : add;
        call_options options;
        auto reply = co_await client->call(op, std::move(request), std::move(options));
        std::printf("op: %s\n", reply ? reply->bytes.c_str() : reply.error().message.c_str());
    }
    co_await host.stop(std::chrono::seconds(2));
}

} // namespace

int main(int argc, char** argv) {
    if (argc != 6) return 2;
    plugin_host_options options;
    auto& node = options.config.node;
    node.name = "victim";
    node.state_dir = argv[1];
    node.run_dir = argv[2];
    node.instance = argv[3];
    options.plugin_dirs = {GANTRY_TEST_PLUGINS, GANTRY_BAD_PLUGINS};
    const bool enable = std::strcmp(argv[4], "enable") == 0;
    const std::string_view what = argv[4];
    for (const auto* name : {"mis", "good"}) {
        plugin_settings settings;
        settings.name = name;
        settings.use = "mischief";
        if (std::strcmp(name, "mis") == 0 && what.starts_with("use ")) settings.use = what.substr(4);
        else if (std::strcmp(name, "mis") == 0 && !enable) settings.config = {{"init", argv[4]}};
        options.config.plugins.push_back(std::move(settings));
    }
    options.config.bind.capabilities["com.acme.mischief/1"] = "good";
    boost::asio::io_context loop;
    auto host = plugin_host::create(loop, std::move(options));
    if (!host) {
        std::printf("create: %s\n", host.error().message.c_str());
        return 1;
    }
    boost::asio::co_spawn(loop, live(**host, argv[5], enable), boost::asio::detached);
    loop.run();
    host->reset();
    return 0;
}
