#include "core/admin/api.hpp"
#include "core/host/plugin_host.hpp"

namespace gantry::core::admin {

namespace asio = boost::asio;

namespace {

base::json::object plugin_object(const plugin_info& plugin) {
    base::json::array capabilities(plugin.capabilities.begin(), plugin.capabilities.end());
    base::json::object faults;
    std::uint64_t fault_count = 0;
    for (const auto& [kind, count] : plugin.faults) {
        faults[kind] = count;
        fault_count += count;
    }
    return {{"name", plugin.name},
            {"use", plugin.use},
            {"id", plugin.id},
            {"version", plugin.version},
            {"file", plugin.file},
            {"sha256", plugin.sha256},
            {"state", to_string(plugin.state)},
            {"detail", plugin.reason},
            {"capabilities", std::move(capabilities)},
            {"ops", plugin.ops_done},
            {"opsFailed", plugin.ops_failed},
            {"opsOpen", plugin.ops_open},
            {"opsAbandoned", plugin.ops_abandoned},
            {"faults", fault_count},
            {"faultsByKind", std::move(faults)},
            {"logLevel", to_string(plugin.log_level)}};
}

asio::awaitable<void> list_plugins(api& to, http_request, responder& answer) {
    base::json::array items;
    for (const auto& plugin : to.host.plugins()) items.push_back(plugin_object(plugin));
    const base::json::object list{{"items", std::move(items)}};
    co_await answer.json(list);
}

asio::awaitable<void> enable_plugin(api& to, http_request request, responder& answer) {
    const std::string name = request.params["name"];
    auto enabled = co_await to.host.enable(name);
    const base::json::object done{{"message", name + " is enabled and running"}};
    if (enabled)
        co_await answer.json(done);
    else
        co_await answer.fail(enabled.error());
}

asio::awaitable<void> set_level(api& to, http_request request, responder& answer) {
    const auto level = parse_log_level(request.params["level"]);
    result<void> set = error{.code = code::invalid,
                             .message = "log level \"" + request.params["level"] + "\" is none of debug, info, warn, error"};
    if (level) set = to.host.set_log_level(request.params["plugin"], *level);
    const base::json::object done;
    if (set)
        co_await answer.json(done);
    else
        co_await answer.fail(set.error());
}

} // namespace

void add_plugin_routes(router& routes, api& to) {
    routes.add("GET", "/v1/plugins", bound(list_plugins, to));
    routes.add("POST", "/v1/plugins/{name}/enable", bound(enable_plugin, to));
    routes.add("PUT", "/v1/log-level/{plugin}/{level}", bound(set_level, to));
}

} // namespace gantry::core::admin
