#include <set>

#include "core/admin/api.hpp"
#include "core/admin/explain.hpp"
#include "core/admin/stream.hpp"
#include "core/host/plugin_host.hpp"
#include "core/kernel/node.hpp"

namespace gantry::core::admin {

namespace asio = boost::asio;

namespace {

/// The namespaces and names asked for; empty means any.
struct pod_filter {
    std::string namespace_;
    std::string name;

    explicit pod_filter(const http_request& request)
        : namespace_(request.query_or("namespace", "")), name(request.query_or("name", "")) {}
    bool takes(const std::string& ns, const std::string& n) const {
        return (namespace_.empty() || namespace_ == ns) && (name.empty() || name == n);
    }
};

base::json::value list_object(const char* kind, base::json::array items) {
    return base::json::object{{"kind", kind}, {"apiVersion", "v1"}, {"items", std::move(items)}};
}

base::json::value pod_object(const node& from, const std::string& ns, const std::string& name) {
    auto text = from.pod_json(ns, name);
    if (!text) return nullptr;
    auto object = base::parse_json(*text, "pod");
    return object ? *std::move(object) : base::json::value{};
}

asio::awaitable<void> list_pods(api& to, http_request request, responder& answer) {
    const pod_filter filter(request);
    if (!request.flag("watch")) {
        base::json::array items;
        for (const auto& pod : to.node.pods()) {
            if (!filter.takes(pod.namespace_, pod.name)) continue;
            auto object = pod_object(to.node, pod.namespace_, pod.name);
            // One that is being cleaned up after a restart has no manifest any more.
            if (!object.is_null()) items.push_back(std::move(object));
        }
        co_await answer.json(list_object("PodList", std::move(items)));
        co_return;
    }
    std::map<std::string, base::json::value> known; // by UID: a pod that is gone is told with its last state
    co_await stream_topic(to.node.pod_changes(), answer, [&](const auto& item) -> std::string {
        if (!item.state) {
            const auto last = known.extract(item.key);
            return last ? base::to_text(base::json::object{{"type", "DELETED"}, {"object", last.mapped()}}) : std::string{};
        }
        const auto& meta = (*item.state)->pod->metadata;
        if (!filter.takes(meta.namespace_, meta.name)) return {};
        auto object = pod_object(to.node, meta.namespace_, meta.name);
        if (object.is_null()) return {};
        const bool added = known.insert_or_assign(item.key, object).second;
        return base::to_text(base::json::object{{"type", added ? "ADDED" : "MODIFIED"}, {"object", std::move(object)}});
    });
}

asio::awaitable<void> get_pod(api& to, http_request request, responder& answer) {
    auto text = to.node.pod_json(request.params["namespace"], request.params["name"]);
    if (text)
        co_await answer.reply(200, "application/json", *text + "\n");
    else
        co_await answer.fail(text.error());
}

asio::awaitable<void> list_events(api& to, http_request request, responder& answer) {
    const pod_filter filter(request);
    if (!request.flag("watch")) {
        base::json::array items;
        for (const auto& event : to.node.events())
            if (filter.takes(event.namespace_, event.pod)) items.push_back(event_object(event));
        co_await answer.json(list_object("EventList", std::move(items)));
        co_return;
    }
    co_await stream_topic(to.node.event_changes(), answer, [&](const auto& item) -> std::string {
        if (!item.state || !filter.takes((*item.state)->namespace_, (*item.state)->pod)) return {};
        return base::to_text(event_object(**item.state));
    });
}

asio::awaitable<void> explain(api& to, http_request request, responder& answer) {
    auto pod = to.node.explain(request.params["namespace"], request.params["name"]);
    if (!pod) {
        co_await answer.fail(pod.error());
        co_return;
    }
    const auto steps = to.host.journal().steps(pod->summary.uid);
    co_await answer.json(explain_answer(*pod, steps, std::chrono::system_clock::now()));
}

} // namespace

void add_pod_routes(router& routes, api& to) {
    routes.add("GET", "/v1/pods", bound(list_pods, to));
    routes.add("GET", "/v1/pods/{namespace}/{name}", bound(get_pod, to));
    routes.add("GET", "/v1/events", bound(list_events, to));
    routes.add("GET", "/v1/explain/{namespace}/{name}", bound(explain, to));
}

} // namespace gantry::core::admin
