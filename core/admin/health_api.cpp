#include "core/admin/api.hpp"
#include "core/host/plugin_host.hpp"
#include "core/kernel/node.hpp"

namespace gantry::core::admin {

namespace asio = boost::asio;

namespace {

constexpr std::chrono::seconds stalled{5};

asio::awaitable<void> healthz(api& to, http_request, responder& answer) {
    const auto lag = to.node.health().loop_lag;
    if (lag < stalled)
        co_await answer.reply(200, "text/plain", "ok\n");
    else
        co_await answer.reply(503, "text/plain", "the SyncLoop has not turned for " +
                                                     std::to_string(std::chrono::floor<std::chrono::seconds>(lag).count()) + "s\n");
}

asio::awaitable<void> metrics(api& to, http_request, responder& answer) {
    std::string text = to.host.metrics_text();
    text += "# HELP gantry_syncloop_lag_seconds Time since the SyncLoop last turned.\n"
            "# TYPE gantry_syncloop_lag_seconds gauge\ngantry_syncloop_lag_seconds " +
            std::to_string(std::chrono::duration<double>(to.node.health().loop_lag).count()) + "\n";
    text += "# HELP gantry_pods Pods of this node by phase.\n# TYPE gantry_pods gauge\n";
    std::map<std::string, std::size_t> phases;
    for (const auto& pod : to.node.pods()) ++phases[pod.phase];
    for (const auto& [phase, count] : phases) text += "gantry_pods{phase=\"" + phase + "\"} " + std::to_string(count) + "\n";
    co_await answer.reply(200, "text/plain; version=0.0.4", std::move(text));
}

} // namespace

void add_health_routes(router& routes, api& to) {
    routes.add("GET", "/healthz", bound(healthz, to));
    routes.add("GET", "/metrics", bound(metrics, to));
}

} // namespace gantry::core::admin
