#include "core/run/event_bridge.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include "base/json.hpp"
#include "core/log/log.hpp"

namespace gantry::core {

namespace asio = boost::asio;

struct event_bridge::reader {
    std::shared_ptr<topic<std::string>::subscription> from;
    event_port::handler on_event;
    asio::cancellation_signal cancel;
    bool ended = false; // an event may have been on its way when the subscription ended

    void end() {
        ended = true;
        cancel.emit(asio::cancellation_type::terminal);
    }

    static asio::awaitable<void> run(std::shared_ptr<reader> self) {
        for (;;) {
            const auto item = co_await self->from->next();
            if (!item || self->ended) co_return;
            self->on_event(item->key, item->state.value_or(std::string{}));
        }
    }
};

result<kube_event> parse_plugin_event(const std::string& json) {
    GANTRY_TRY(const auto document, base::parse_json(json, "event"));
    const auto text = [](const base::json::value& from, const char* name) -> std::string {
        const auto* object = from.if_object();
        return object ? base::string_at(*object, name) : std::string{};
    };
    kube_event event;
    event.warning = text(document, "type") == "Warning";
    event.reason = text(document, "reason");
    event.message = text(document, "message");
    if (const auto* object = document.if_object())
        if (const auto* pod = object->if_contains("pod")) {
            event.namespace_ = text(*pod, "namespace");
            event.pod = text(*pod, "name");
            event.uid = text(*pod, "uid");
        }
    if (event.reason.empty()) return error{.code = code::invalid, .message = "event: reason: must not be empty"};
    if (event.pod.empty()) return error{.code = code::invalid, .message = "event: pod.name: must not be empty"};
    return event;
}

event_bridge::event_bridge(asio::io_context& loop, std::function<void(kube_event)> record)
    : loop_(loop), record_(std::move(record)) {}

topic<std::string>& event_bridge::topic_of(const std::string& name) {
    auto& slot = topics_[name];
    if (!slot) slot = std::make_unique<topic<std::string>>(loop_.get_executor());
    return *slot;
}

event_port event_bridge::port() {
    event_port port;
    port.publish = [this](const std::string& name, const std::string& key, const std::string& bytes) {
        topic_of(name).publish(key, bytes);
    };
    port.subscribe = [this](const std::string& name, event_port::handler on_event) {
        auto r = std::make_shared<reader>();
        r->from = topic_of(name).subscribe();
        r->on_event = std::move(on_event);
        asio::co_spawn(loop_, reader::run(r), asio::bind_cancellation_slot(r->cancel.slot(), asio::detached));
        readers_.emplace(++last_reader_, std::move(r));
        return last_reader_;
    };
    port.unsubscribe = [this](std::uint64_t subscription) {
        const auto node = readers_.extract(subscription);
        if (node) node.mapped()->end();
    };
    port.emit = [this](const std::string& instance, const std::string& json) {
        auto event = parse_plugin_event(json);
        if (event)
            record_(*std::move(event));
        else
            log::warn("a plugin emitted an event that is none", {{"plugin", instance}, {"error", event.error().message}});
    };
    return port;
}

void event_bridge::stop() {
    for (auto& [id, r] : readers_) r->end();
    readers_.clear();
}

} // namespace gantry::core
