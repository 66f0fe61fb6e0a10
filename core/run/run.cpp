#include "core/run/run.hpp"

#include <csignal>
#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "core/admin/api.hpp"
#include "core/host/plugin_host.hpp"
#include "core/kernel/node.hpp"
#include "core/log/log.hpp"
#include "core/run/event_bridge.hpp"
#include "core/run/host_address.hpp"
#include "core/run/instance_lock.hpp"
#include "gantry/abi/draft/image.h"
#include "gantry/abi/draft/pod_source.h"
#include "gantry/abi/draft/resources.h"

namespace gantry::core {

namespace asio = boost::asio;

namespace {

constexpr std::chrono::seconds stop_timeout{5};

node_options options_of(const node_settings& settings) {
    node_options options;
    options.name = settings.name;
    options.instance = settings.instance;
    options.state_dir = settings.state_root();
    options.log_dir = settings.pod_logs_dir;
    options.host_ip = host_address();
    return options;
}

node_clients clients_of(plugin_host& host, const checked_config& config) {
    node_clients clients;
    for (const auto& [handler, instance] : config.bound.handlers) {
        plugin_client* runtime = host.runtime(handler);
        clients.runtimes.push_back({handler, runtime, host.client_of(instance, GANTRY_IMAGE)});
    }
    clients.resources = host.client(GANTRY_RESOURCES);
    clients.pod_sources = host.clients(GANTRY_POD_SOURCE);
    return clients;
}

/// The parts of a running node, in the order in which they start; they stop in the reverse order.
class running_node {
public:
    running_node(asio::io_context& loop, checked_config& config, plugin_host& host, event_bridge& bridge)
        : loop_(loop), config_(config), host_(host), bridge_(bridge), signals_(loop, SIGTERM, SIGINT) {}

    asio::awaitable<void> run() {
        outcome = co_await start();
        if (outcome) {
            log::info("the node runs", {{"node", config_.config.node.name}, {"socket", config_.config.node.socket}});
            boost::system::error_code ec;
            const int signal = co_await signals_.async_wait(asio::redirect_error(asio::use_awaitable, ec));
            log::info("stopping; containers go on running", {{"signal", ::strsignal(signal)}});
        }
        leave_at_next_signal();
        co_await stop();
    }

    void record(kube_event event) {
        if (node_) node_->record_event(std::move(event));
    }

    result<void> outcome;

private:
    asio::awaitable<result<void>> start() {
        GANTRY_CO_CHECK(co_await host_.start());
        node_ = std::make_unique<node>(loop_, options_of(config_.config.node), clients_of(host_, config_));
        GANTRY_CO_CHECK(co_await node_->start());
        api_ = std::make_unique<admin::api>(admin::api{loop_, *node_, host_});
        add_pod_routes(routes_, *api_);
        add_log_routes(routes_, *api_);
        add_exec_routes(routes_, *api_);
        add_image_routes(routes_, *api_);
        add_plugin_routes(routes_, *api_);
        add_health_routes(routes_, *api_);
        co_return server_.listen(config_.config.node.socket);
    }

    asio::awaitable<void> stop() {
        server_.stop();
        if (node_) co_await node_->stop();
        co_await host_.stop(stop_timeout);
        bridge_.stop();
        signals_.cancel();
    }

    void leave_at_next_signal() {
        signals_.async_wait([](const boost::system::error_code& ec, int signal) {
            if (!ec) ::_exit(128 + signal);
        });
    }

    asio::io_context& loop_;
    checked_config& config_;
    plugin_host& host_;
    event_bridge& bridge_;
    asio::signal_set signals_;
    std::unique_ptr<node> node_;
    std::unique_ptr<admin::api> api_;
    admin::router routes_;
    admin::http_server server_{loop_, routes_};
};

} // namespace

result<void> run(checked_config config) {
    const node_settings& settings = config.config.node;
    log::configure(settings.log_format, settings.log_level);
    for (const auto& warning : config.warnings) log::warn(warning);
    ::signal(SIGPIPE, SIG_IGN);
    GANTRY_TRY(const auto lock, lock_instance(settings.run_root()));

    asio::io_context loop(1);
    running_node* running = nullptr;
    event_bridge bridge(loop, [&running](kube_event event) {
        if (running) running->record(std::move(event));
    });
    GANTRY_TRY(const auto host, plugin_host::create(loop, config, bridge.port()));
    running_node node(loop, config, *host, bridge);
    running = &node;
    asio::co_spawn(loop, node.run(), [](const std::exception_ptr& fault) {
        if (fault) std::rethrow_exception(fault);
    });
    loop.run();
    log::flush();
    return node.outcome;
}

} // namespace gantry::core
