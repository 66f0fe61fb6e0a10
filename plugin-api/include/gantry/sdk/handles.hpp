// What an instance has registered with the host, as objects: timers, watched descriptors, subscriptions, metrics.
// Destroying the object revokes the registration. Callbacks run on the lane.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include "detail/context.hpp"

namespace gantry::sdk {

namespace detail {

/// What a handle revokes when it goes.
struct registration {
    std::shared_ptr<context> owner{}; ///< empty when there is nothing to revoke
    callback_base* f = nullptr;
    std::uint64_t handle = 0; ///< the host's

    explicit operator bool() const noexcept { return owner && owner->open(); }
};

} // namespace detail

/// One run of a function in the future. Destroy and cancel [lane]; elsewhere the function may be running.
class timer {
public:
    timer() = default;
    explicit timer(detail::registration r) noexcept : r_(std::move(r)) {}
    timer(timer&& other) noexcept : r_(std::exchange(other.r_, {})) {}
    timer& operator=(timer&& other) noexcept {
        cancel();
        r_ = std::exchange(other.r_, {});
        return *this;
    }
    ~timer() { cancel(); }

    /// True if the function had not run and will not.
    bool cancel() noexcept {
        const auto r = std::exchange(r_, {});
        if (!r) return false;
        const auto* service = r.owner->host().timer;
        if (service->cancel(service->host, r.handle) == 0) return false;
        r.owner->free(r.f);
        return true;
    }

private:
    detail::registration r_;
};

/// A descriptor under watch, borrowed until the watch ends. Destroy [lane].
class watch {
public:
    using signature = void(std::int32_t, std::uint32_t);
    watch() = default;
    explicit watch(detail::registration r) noexcept : r_(std::move(r)) {}
    watch(watch&& other) noexcept : r_(std::exchange(other.r_, {})) {}
    watch& operator=(watch&& other) noexcept {
        end();
        r_ = std::exchange(other.r_, {});
        return *this;
    }
    ~watch() { end(); }

    void end() noexcept {
        const auto r = std::exchange(r_, {});
        if (!r) return;
        const auto* service = r.owner->host().fd;
        service->unwatch(service->host, r.handle);
        r.owner->revoke(r.f);
    }

private:
    detail::registration r_;
};

/// A subscription to a topic of the node's bus. Destroy [lane].
class subscription {
public:
    using signature = void(std::string_view topic, std::string_view key, std::string_view bytes);
    subscription() = default;
    explicit subscription(detail::registration r) noexcept : r_(std::move(r)) {}
    subscription(subscription&& other) noexcept : r_(std::exchange(other.r_, {})) {}
    subscription& operator=(subscription&& other) noexcept {
        end();
        r_ = std::exchange(other.r_, {});
        return *this;
    }
    ~subscription() { end(); }

    void end() noexcept {
        const auto r = std::exchange(r_, {});
        if (!r) return;
        const auto* service = r.owner->host().events;
        service->unsubscribe(service->host, r.handle);
        r.owner->revoke(r.f);
    }

private:
    detail::registration r_;
};

/// A family of series, exposed as gantry_plugin_NAME. Counters add, gauges set, histograms observe seconds. [any]
class metric {
public:
    metric() = default;
    metric(std::shared_ptr<detail::context> owner, std::uint32_t id) noexcept : owner_(std::move(owner)), id_(id) {}

    /// label: a value for the label "key", or empty.
    void record(double value, std::string_view label = {}) const noexcept {
        if (!owner_ || !owner_->open()) return;
        const auto* service = owner_->host().metrics;
        service->record(service->host, id_, str(label), value);
    }

private:
    std::shared_ptr<detail::context> owner_;
    std::uint32_t id_ = 0;
};

} // namespace gantry::sdk
