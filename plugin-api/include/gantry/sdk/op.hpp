// op: one operation that a plugin has taken and owes a completion.
//
// A copyable handle; the operation is completed exactly once: by complete(), or, when the last handle goes without
// that, with an error that says so. Everything here is [any] unless it says otherwise.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

#include "detail/context.hpp"
#include "message.hpp"

namespace gantry::sdk {

using time_point = std::chrono::steady_clock::time_point; ///< CLOCK_MONOTONIC, the clock of every deadline

constexpr std::int64_t to_ns(time_point at) noexcept {
    return at == time_point::max() ? INT64_MAX : std::chrono::nanoseconds(at.time_since_epoch()).count();
}
constexpr time_point from_ns(std::int64_t ns) noexcept {
    return ns == INT64_MAX ? time_point::max() : time_point(std::chrono::nanoseconds(ns));
}

namespace detail {

class op_state final : public stoppable, public std::enable_shared_from_this<op_state> {
public:
    op_state(std::shared_ptr<context> owner, gantry_op number, std::string_view function)
        : context_(std::move(owner)), number_(number), function_(function) {
        context_->add(this);
    }
    ~op_state() {
        if (!done_) {
            complete(error{.code = code::internal,
                           .message = "plugin instance \"" + std::string(context_->instance()) + "\": " +
                                      std::string(function_) + " gave up the operation without completing it"});
        }
        context_->remove(this);
    }
    op_state(const op_state&) = delete;
    op_state& operator=(const op_state&) = delete;

    void complete(result<reply> outcome) noexcept {
        if (done_.exchange(true)) {
            context_->log(GANTRY_LOG_WARN, "an operation was completed a second time; the first completion holds");
            return;
        }
        if (!context_->open()) return;
        const auto* service = context_->host().op;
        if (!outcome) {
            const gantry_error e = to_abi(outcome.error());
            const gantry_reply failed{sizeof(gantry_reply), 0, nullptr, {nullptr, 0}, &e};
            return service->complete(service->host, number_, &failed);
        }
        try {
            with_abi(*outcome, [&](const gantry_reply& out) { service->complete(service->host, number_, &out); });
        } catch (...) { // only the list of descriptors can have failed, before the host was called
            const gantry_error e{sizeof(gantry_error), GANTRY_RESOURCE, 0, 1, 0, str("out of memory"), {nullptr, 0}};
            const gantry_reply failed{sizeof(gantry_reply), 0, nullptr, {nullptr, 0}, &e};
            service->complete(service->host, number_, &failed);
        }
    }

    std::stop_token stop_token() {
        const std::lock_guard lock(mutex_);
        if (!stop_) {
            stop_.emplace();
            if (context_->open() && !done_) {
                const auto* service = context_->host().op;
                service->on_cancel(service->host, number_, &op_state::cancel, this);
            }
        }
        return stop_->get_token();
    }
    void on_cancel(unique_function<void()> f) {
        auto shared = std::make_shared<unique_function<void()>>(std::move(f));
        auto token = stop_token();
        auto guarded = [owner = context_, shared] { owner->guarded("a cancel callback", *shared); };
        const std::lock_guard lock(mutex_);
        callbacks_.emplace_back(std::move(token), std::move(guarded));
    }
    bool hold(std::shared_ptr<void>& alive) noexcept override {
        alive = weak_from_this().lock();
        return alive != nullptr;
    }
    /// [lane]
    void request_stop() noexcept override {
        const auto self = weak_from_this().lock(); // a callback may complete the op and drop the last handle
        if (!self) return;
        std::stop_source source{std::nostopstate};
        {
            const std::lock_guard lock(mutex_);
            stopped_ = true;
            if (stop_) source = *stop_;
        }
        if (source.stop_possible()) source.request_stop();
    }

    bool cancelled() const noexcept {
        if (stopped_ || done_ || !context_->open()) return true;
        const auto* service = context_->host().op;
        return service->is_cancelled(service->host, number_) != 0;
    }
    bool done() const noexcept { return done_; }
    gantry_op number() const noexcept { return number_; }
    const std::shared_ptr<context>& owner() const noexcept { return context_; }

private:
    static void cancel(void* self, gantry_op) noexcept { static_cast<op_state*>(self)->request_stop(); }
    using cancel_callback = std::stop_callback<std::function<void()>>;

    std::shared_ptr<context> context_;
    gantry_op number_;
    std::string_view function_;
    std::atomic<bool> done_{false};
    std::atomic<bool> stopped_{false};
    std::recursive_mutex mutex_;
    std::optional<std::stop_source> stop_;
    std::list<cancel_callback> callbacks_;
};

} // namespace detail

class op {
public:
    explicit op(std::shared_ptr<detail::op_state> state) : state_(std::move(state)) {}

    /// Ends the operation. A second call is logged and has no effect. Nothing of the op may be expected to work after
    /// it.
    void complete(result<reply> outcome) const noexcept { state_->complete(std::move(outcome)); }

    /// One element of a streaming operation. Blocks while the host's queue is full, so not for the lane unless the
    /// stream is known to be slow; coroutines use host.send(op, reply). Error `cancelled`: nobody listens any more.
    result<void> item(const reply& element) const {
        const auto& owner = *state_->owner();
        if (!owner.open()) return owner.closed();
        const auto* service = owner.host().op;
        const auto status = detail::with_abi(
            element, [&](const gantry_reply& out) { return service->item(service->host, state_->number(), &out); });
        if (status == GANTRY_OK) return {};
        return error{.code = code_of(status),
                     .message = status == GANTRY_CANCELLED ? "the stream was cancelled: nobody reads it any more"
                                                           : "the host refused an item of the stream"};
    }

    /// Latest progress, in the op's own unit; total 0 when not known.
    void progress(std::uint64_t done, std::uint64_t total, std::string_view what = {}) const noexcept {
        const auto& owner = *state_->owner();
        if (!owner.open()) return;
        const gantry_progress report{sizeof(gantry_progress), 0, done, total, str(what)};
        owner.host().op->progress(owner.host().op->host, state_->number(), &report);
    }

    /// time_point::max() when there is none.
    time_point deadline() const noexcept {
        const auto& owner = *state_->owner();
        if (!owner.open()) return time_point::min();
        return from_ns(owner.host().op->deadline_ns(owner.host().op->host, state_->number()));
    }

    /// True once cancelled, past the deadline, completed, or the instance is stopping.
    bool cancelled() const noexcept { return state_->cancelled(); }

    /// The error to complete a cancelled op with.
    error cancelled_error() const {
        if (std::chrono::steady_clock::now() >= deadline())
            return {.code = code::timeout, .message = "the deadline of the operation passed", .retryable = true};
        return {.code = code::cancelled, .message = "the operation was cancelled", .retryable = true};
    }

    /// Stops when the op is cancelled, for std::condition_variable_any, std::stop_callback and the like. Callbacks run
    /// on the lane and must not throw.
    std::stop_token stop_token() const { return state_->stop_token(); }

    /// Runs f on the lane when the op is cancelled; at once, on this thread, if f comes after that. What f refers to
    /// must live as long as the op: in a blocking operation use std::stop_callback on stop_token(), whose destructor
    /// waits for f.
    void on_cancel(unique_function<void()> f) const { state_->on_cancel(std::move(f)); }

    /// Marks a step for `gantry explain` and the op's trace.
    void step(std::string_view name) const noexcept {
        const auto& owner = *state_->owner();
        if (const auto* trace = owner.host().trace; trace != nullptr && owner.open())
            trace->step(trace->host, state_->number(), str(name));
    }

    gantry_op number() const noexcept { return state_->number(); }

private:
    std::shared_ptr<detail::op_state> state_;
};

} // namespace gantry::sdk
