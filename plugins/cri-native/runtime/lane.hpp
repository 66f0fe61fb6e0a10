// Awaitables of the lane: a callback's outcome, a mutex, a moment that comes once.
// Everything here is [lane] and resumes waiters from the host's queue, never from inside the call that woke them.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "gantry/sdk/host.hpp"

namespace gantry::cri_native {

/// Awaits the one call of the callback that begin(callback) is given. Not interruptible: whoever calls back must do so,
/// also on failure.
template <class T, class Begin>
sdk::async<T> outcome_of(const sdk::host& host, Begin begin) {
    static_assert(std::is_trivially_copyable_v<Begin>,
                  "capture by reference: GCC 12 destroys the function object twice");
    using awaited = sdk::async<T>;
    return awaited([host, begin = std::move(begin)](
                       const typename awaited::box& box) mutable -> result<typename awaited::stopper> {
        begin(std::function<void(result<T>)>([host, box](result<T> outcome) {
            host.post([box, outcome = std::move(outcome)]() mutable { box->deliver(std::move(outcome)); });
        }));
        return typename awaited::stopper{};
    });
}

/// The same, but after `timeout` the await ends with code::timeout and a later call of the callback has no effect.
template <class T, class Begin>
sdk::async<T> outcome_within(const sdk::host& host, std::chrono::nanoseconds timeout, Begin begin) {
    static_assert(std::is_trivially_copyable_v<Begin>,
                  "capture by reference: GCC 12 destroys the function object twice");
    using awaited = sdk::async<T>;
    return awaited(
        [host, timeout, begin](const typename awaited::box& box) mutable -> result<typename awaited::stopper> {
            begin(std::function<void(result<T>)>([host, box](result<T> outcome) {
                host.post([box, outcome = std::move(outcome)]() mutable { box->deliver(std::move(outcome)); });
            }));
            GANTRY_TRY(auto alarm, host.after(timeout, [box] {
                box->deliver(error{.code = code::timeout, .message = "no answer in time", .retryable = true});
            }));
            return typename awaited::stopper([alarm = std::move(alarm)]() mutable { alarm.cancel(); });
        });
}

/// Comes once; afterwards waiting ends at once.
class lane_event {
public:
    bool set() const noexcept { return set_; }

    void notify(const sdk::host& host) {
        set_ = true;
        for (auto& box : std::exchange(waiting_, {})) host.post([box] { box->deliver(true); });
    }

    /// True once the event has come, false after `timeout`. Interruptible.
    sdk::async<bool> wait(const sdk::host& host, std::optional<std::chrono::nanoseconds> timeout = std::nullopt) {
        using awaited = sdk::async<bool>;
        return awaited([this, host, timeout](const awaited::box& box) -> result<awaited::stopper> {
            if (set_) {
                host.post([box] { box->deliver(true); });
                return awaited::stopper([] {});
            }
            waiting_.push_back(box);
            if (!timeout) return awaited::stopper([] {});
            GANTRY_TRY(auto alarm, host.after(*timeout, [box] { box->deliver(false); }));
            return awaited::stopper([alarm = std::move(alarm)]() mutable { alarm.cancel(); });
        });
    }

private:
    bool set_ = false;
    std::vector<sdk::async<bool>::box> waiting_;
};

/// First come, first served. Its owner must outlive every lock.
class lane_mutex {
public:
    class guard {
    public:
        guard() = default;
        guard(guard&& other) noexcept : mutex_(std::exchange(other.mutex_, nullptr)), host_(std::move(other.host_)) {}
        guard& operator=(guard&&) = delete;
        ~guard() {
            if (mutex_ != nullptr) mutex_->unlock(*host_);
        }

    private:
        friend class lane_mutex;
        guard(lane_mutex& mutex, const sdk::host& host) : mutex_(&mutex), host_(host) {}
        lane_mutex* mutex_ = nullptr;
        std::optional<sdk::host> host_;
    };

    /// Not interruptible: what holds the lock ends by its own deadline.
    sdk::task<guard> lock(sdk::host host) {
        while (held_) {
            const auto woken = co_await queue(host);
            if (!woken) continue; // an interruption that was due; the lock is still wanted
        }
        held_ = true;
        co_return guard(*this, host);
    }

private:
    sdk::async<bool> queue(const sdk::host&) {
        using awaited = sdk::async<bool>;
        return awaited([this](const awaited::box& box) -> result<awaited::stopper> {
            waiting_.push_back(box);
            return awaited::stopper{};
        });
    }
    void unlock(const sdk::host& host) {
        held_ = false;
        if (waiting_.empty()) return;
        auto next = std::move(waiting_.front());
        waiting_.pop_front();
        host.post([next] { next->deliver(true); });
    }

    bool held_ = false;
    std::deque<sdk::async<bool>::box> waiting_;
};

} // namespace gantry::cri_native
