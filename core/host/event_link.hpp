// Between the node's event bus, which lives on the core loop, and one instance's lane.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "core/host/event_port.hpp"

namespace boost::asio {
class io_context;
}

namespace gantry::core {

class lane;

class event_link : public std::enable_shared_from_this<event_link> {
public:
    using handler = std::function<void(const std::string& topic, const std::string& key, const std::string& bytes)>;

    event_link(std::string instance, boost::asio::io_context& loop, lane& lane, std::shared_ptr<const event_port> port)
        : instance_(std::move(instance)), loop_(loop), lane_(lane), port_(std::move(port)) {}

    void publish(std::string topic, std::string key, std::string bytes); ///< [any]
    void emit(std::string event_json);                                    ///< [any]
    /// on_event runs on the lane. Events of one key that the lane has not come to are replaced by the newest. [any]
    std::uint64_t subscribe(std::string topic, handler on_event);
    void unsubscribe(std::uint64_t subscription); ///< on the lane: on_event will not run again
    void unsubscribe_all();

private:
    struct subscription {
        std::string topic;
        handler on_event;
        std::uint64_t at_bus = 0;
        std::deque<std::string> order{};             ///< keys that wait for the lane
        std::map<std::string, std::string> pending{};
        bool posted = false;
    };
    void arrived(std::uint64_t handle, const std::string& key, const std::string& bytes);
    void drain(std::uint64_t handle);
    void leave_bus(std::uint64_t at_bus);

    const std::string instance_;
    boost::asio::io_context& loop_;
    lane& lane_;
    const std::shared_ptr<const event_port> port_;
    std::mutex mutex_;
    std::map<std::uint64_t, subscription> subscriptions_;
    std::uint64_t next_ = 1;
};

} // namespace gantry::core
