// Joins the plugins' event service to the node's bus: one topic of latest states for each topic name.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include <boost/asio/io_context.hpp>

#include "core/host/plugin_host.hpp"
#include "core/kernel/kube_event.hpp"
#include "core/kernel/topic.hpp"

namespace gantry::core {

/// The Event of a plugin's JSON {type, reason, message, pod {namespace, name, uid}}; the error names the missing field.
result<kube_event> parse_plugin_event(const std::string& json);

/// Used from the core loop only; outlives the plugin host.
class event_bridge {
public:
    event_bridge(boost::asio::io_context& loop, std::function<void(kube_event)> record);

    event_port port();
    /// Ends every subscription's coroutine.
    void stop();

private:
    struct reader;

    topic<std::string>& topic_of(const std::string& name);

    boost::asio::io_context& loop_;
    std::function<void(kube_event)> record_;
    std::map<std::string, std::unique_ptr<topic<std::string>>> topics_;
    std::map<std::uint64_t, std::shared_ptr<reader>> readers_;
    std::uint64_t last_reader_ = 0;
};

} // namespace gantry::core
