// How long one operation takes from a coroutine of the core loop through the ABI to a plugin and back: abi_op [COUNT].
// Prints p50 and p99 in microseconds, with the lane hop, one operation at a time and 64 at a time.
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <vector>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/files.hpp"
#include "core/host/plugin_host.hpp"

namespace {

using namespace gantry;
using namespace gantry::core;
using clock_type = std::chrono::steady_clock;

constexpr op_ref run{"com.acme.mischief/1", "run", 8};

boost::asio::awaitable<void> one_after_another(plugin_client& client, int count, std::vector<double>& times) {
    for (int i = 0; i < count; ++i) {
        op_request request;
        request.bytes = "x";
        call_options options;
        const auto begin = clock_type::now();
        const auto reply = co_await client.call(run, std::move(request), std::move(options));
        times.push_back(std::chrono::duration<double, std::micro>(clock_type::now() - begin).count());
        if (!reply) std::printf("failed: %s\n", reply.error().message.c_str());
    }
}

void report(const char* what, std::vector<double>& times, clock_type::duration all) {
    std::sort(times.begin(), times.end());
    const auto at = [&](double share) { return times[static_cast<std::size_t>(share * static_cast<double>(times.size() - 1))]; };
    std::printf("%-22s p50 %7.1f us  p99 %7.1f us  %8.0f ops/s\n", what, at(0.5), at(0.99),
                static_cast<double>(times.size()) / std::chrono::duration<double>(all).count());
}

boost::asio::awaitable<void> measure(boost::asio::io_context& loop, plugin_host& host, int count) {
    const auto started = co_await host.start();
    if (!started) co_return;
    auto& client = *host.client("com.acme.mischief/1");
    std::vector<double> times;
    co_await one_after_another(client, count / 10, times); // warms up
    times.clear();
    auto begin = clock_type::now();
    co_await one_after_another(client, count, times);
    report("one at a time", times, clock_type::now() - begin);

    times.clear();
    int running = 64;
    boost::asio::steady_timer done(loop, clock_type::time_point::max());
    begin = clock_type::now();
    for (int i = 0; i < 64; ++i)
        boost::asio::co_spawn(loop, one_after_another(client, count / 64, times), [&](const std::exception_ptr&) {
            if (--running == 0) done.cancel();
        });
    boost::system::error_code ignored;
    co_await done.async_wait(boost::asio::redirect_error(boost::asio::use_awaitable, ignored));
    report("64 at a time", times, clock_type::now() - begin);
    co_await host.stop(std::chrono::seconds(2));
}

} // namespace

int main(int argc, char** argv) {
    char pattern[] = "/tmp/gantry-bench-XXXXXX";
    const std::string dir = ::mkdtemp(pattern);
    plugin_host_options options;
    options.config.node.name = "bench";
    options.config.node.instance = "t" + std::to_string(::getpid());
    options.config.node.state_dir = dir + "/state";
    options.config.node.run_dir = dir + "/run";
    options.plugin_dirs = {GANTRY_TEST_PLUGINS};
    plugin_settings settings;
    settings.name = settings.use = "mischief";
    options.config.plugins = {settings};
    options.config.bind.capabilities["com.acme.mischief/1"] = "mischief";
    boost::asio::io_context loop(1);
    auto host = plugin_host::create(loop, std::move(options));
    if (!host) {
        std::printf("%s\n", host.error().message.c_str());
        return 1;
    }
    boost::asio::co_spawn(loop, measure(loop, **host, argc > 1 ? std::atoi(argv[1]) : 20'000), boost::asio::detached);
    loop.run();
    host->reset();
    return base::remove_tree(dir).ok() ? 0 : 1;
}
