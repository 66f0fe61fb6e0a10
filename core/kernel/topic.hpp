// topic<T>: the event bus. State is published by key; each subscriber has a mailbox in which a newer state replaces an
// unread older one of the same key, so a slow reader costs memory for at most one value per key and loses no state.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <boost/asio/awaitable.hpp>

#include "core/kernel/signal.hpp"

namespace gantry::core {

/// Used from the core loop only. T should be cheap to copy (a shared_ptr to const).
template <class T>
class topic {
public:
    struct item {
        std::string key;
        std::optional<T> state; ///< nothing: the key is gone
    };

    class subscription {
    public:
        explicit subscription(boost::asio::any_io_executor executor) : ready_(std::move(executor)) {}

        /// The next key whose state changed. Starts with the whole state at the time of subscribing. Ends with nothing
        /// when the waiting coroutine is cancelled.
        boost::asio::awaitable<std::optional<item>> next() {
            while (order_.empty())
                if (!co_await ready_.wait()) co_return std::nullopt;
            item result{std::move(order_.front()), std::nullopt};
            order_.pop_front();
            auto node = pending_.extract(result.key);
            result.state = std::move(node.mapped());
            co_return result;
        }

    private:
        friend class topic;

        void put(const std::string& key, std::optional<T> state) {
            const auto [it, added] = pending_.insert_or_assign(key, std::move(state));
            if (added) order_.push_back(key);
            ready_.notify();
        }

        std::map<std::string, std::optional<T>> pending_;
        std::deque<std::string> order_;
        signal ready_;
    };

    explicit topic(boost::asio::any_io_executor executor) : executor_(std::move(executor)) {}

    void publish(const std::string& key, T state) {
        each([&](subscription& s) { s.put(key, state); });
        state_.insert_or_assign(key, std::move(state));
    }

    void erase(const std::string& key) {
        if (state_.erase(key) == 0) return;
        each([&](subscription& s) { s.put(key, std::nullopt); });
    }

    /// Lives as long as the caller keeps it.
    std::shared_ptr<subscription> subscribe() {
        auto result = std::make_shared<subscription>(executor_);
        for (const auto& [key, state] : state_) result->put(key, state);
        subscribers_.push_back(result);
        return result;
    }

    const std::map<std::string, T>& state() const { return state_; }

private:
    template <class F>
    void each(F f) {
        std::erase_if(subscribers_, [&](const std::weak_ptr<subscription>& weak) {
            const auto s = weak.lock();
            if (s) f(*s);
            return !s;
        });
    }

    boost::asio::any_io_executor executor_;
    std::map<std::string, T> state_;
    std::deque<std::weak_ptr<subscription>> subscribers_;
};

} // namespace gantry::core
