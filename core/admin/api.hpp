// The admin API: what the CLI and operators read and ask of a running node. Routes by area, one file each.
#pragma once

#include "core/admin/http.hpp"

namespace boost::asio {
class io_context;
}

namespace gantry::core {
class node;
class plugin_host;
} // namespace gantry::core

namespace gantry::core::admin {

/// Everything outlives the routes.
struct api {
    boost::asio::io_context& loop;
    core::node& node;
    core::plugin_host& host;
};

/// A handler that serves a request from the API's parts.
inline handler bound(boost::asio::awaitable<void> (*serve)(api&, http_request, responder&), api& to) {
    return [&to, serve](http_request request, responder& answer) { return serve(to, std::move(request), answer); };
}

void add_pod_routes(router& routes, api& to);    ///< /v1/pods, /v1/events, /v1/explain
void add_log_routes(router& routes, api& to);    ///< /v1/logs
void add_exec_routes(router& routes, api& to);   ///< /v1/exec
void add_image_routes(router& routes, api& to);  ///< /v1/images
void add_plugin_routes(router& routes, api& to); ///< /v1/plugins, /v1/log-level
void add_health_routes(router& routes, api& to); ///< /healthz, /metrics

} // namespace gantry::core::admin
