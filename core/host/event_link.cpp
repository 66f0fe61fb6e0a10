#include "core/host/event_link.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include "core/host/lane.hpp"

namespace gantry::core {

namespace asio = boost::asio;

void event_link::publish(std::string topic, std::string key, std::string bytes) {
    if (!port_->publish) return;
    asio::post(loop_, [port = port_, topic = std::move(topic), key = std::move(key), bytes = std::move(bytes)] {
        port->publish(topic, key, bytes);
    });
}

void event_link::emit(std::string event_json) {
    if (!port_->emit) return;
    asio::post(loop_, [port = port_, instance = instance_, json = std::move(event_json)] { port->emit(instance, json); });
}

std::uint64_t event_link::subscribe(std::string topic, handler on_event) {
    std::uint64_t handle = 0;
    {
        const std::lock_guard lock(mutex_);
        handle = next_++;
        subscriptions_.emplace(handle, subscription{.topic = topic, .on_event = std::move(on_event)});
    }
    if (!port_->subscribe) return handle;
    asio::post(loop_, [self = shared_from_this(), handle, topic = std::move(topic)] {
        const auto at_bus = self->port_->subscribe(topic, [weak = std::weak_ptr(self), handle](const std::string& key, const std::string& bytes) {
            if (const auto link = weak.lock()) link->arrived(handle, key, bytes);
        });
        {
            const std::lock_guard lock(self->mutex_);
            if (const auto found = self->subscriptions_.find(handle); found != self->subscriptions_.end()) {
                found->second.at_bus = at_bus;
                return;
            }
        }
        if (self->port_->unsubscribe) self->port_->unsubscribe(at_bus); // it was ended before the loop came to it
    });
    return handle;
}

void event_link::arrived(std::uint64_t handle, const std::string& key, const std::string& bytes) {
    {
        const std::lock_guard lock(mutex_);
        const auto found = subscriptions_.find(handle);
        if (found == subscriptions_.end()) return;
        auto& s = found->second;
        const auto [slot, fresh] = s.pending.insert_or_assign(key, bytes);
        if (fresh) s.order.push_back(slot->first);
        if (std::exchange(s.posted, true)) return;
    }
    lane_.post([self = shared_from_this(), handle] { self->drain(handle); });
}

void event_link::drain(std::uint64_t handle) {
    for (;;) {
        handler on_event;
        std::string topic, key, bytes;
        {
            const std::lock_guard lock(mutex_);
            const auto found = subscriptions_.find(handle);
            if (found == subscriptions_.end()) return;
            auto& s = found->second;
            if (s.order.empty()) {
                s.posted = false;
                return;
            }
            key = std::move(s.order.front());
            s.order.pop_front();
            bytes = std::move(s.pending.extract(key).mapped());
            on_event = s.on_event;
            topic = s.topic;
        }
        on_event(topic, key, bytes);
    }
}

void event_link::leave_bus(std::uint64_t at_bus) {
    if (at_bus == 0 || !port_->unsubscribe) return;
    asio::post(loop_, [port = port_, at_bus] { port->unsubscribe(at_bus); });
}

void event_link::unsubscribe(std::uint64_t handle) {
    std::uint64_t at_bus = 0;
    {
        const std::lock_guard lock(mutex_);
        const auto found = subscriptions_.find(handle);
        if (found == subscriptions_.end()) return;
        at_bus = found->second.at_bus;
        subscriptions_.erase(found);
    }
    leave_bus(at_bus);
}

void event_link::unsubscribe_all() {
    std::map<std::uint64_t, subscription> all;
    {
        const std::lock_guard lock(mutex_);
        all.swap(subscriptions_);
    }
    for (const auto& [handle, s] : all) leave_bus(s.at_bus);
}

} // namespace gantry::core
