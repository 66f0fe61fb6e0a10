// async<T>: something that a task awaits and that ends on the lane with a result<T>.
#pragma once

#include <coroutine>
#include <functional>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "detail/context.hpp"
#include "task.hpp"

namespace gantry::sdk {

namespace detail {

/// Where the outcome of an await arrives. Shared with whatever produces it; touched on the lane only.
template <class T>
struct mailbox {
    std::optional<result<T>> outcome;
    std::coroutine_handle<> suspended{};
    coroutine_scope* scope = nullptr; ///< null once nobody waits

    void deliver(result<T> r) {
        if (scope == nullptr) return;
        outcome.emplace(std::move(r));
        std::exchange(scope, nullptr)->waiting = nullptr;
        std::exchange(suspended, {}).resume();
    }
};

template <class R>
struct unwrap {
    using type = R;
};
template <class T>
struct unwrap<result<T>> {
    using type = T;
};

/// Runs f, whose result is result<T>, T or void, as a result<T>.
template <class T, class F>
result<T> run_guarded(const context& owner, const char* kind, F& f) noexcept {
    try {
        if constexpr (std::is_void_v<std::invoke_result_t<F&>>) {
            f();
            return {};
        } else {
            return f();
        }
    } catch (...) {
        return thrown(owner.instance(), kind);
    }
}

} // namespace detail

template <class T>
class [[nodiscard]] async final : detail::waiter {
public:
    using box = std::shared_ptr<detail::mailbox<T>>;
    using stopper = unique_function<void()>;
    /// Begins the work and returns what ends it early; the outcome is delivered later, on the lane.
    using starter = unique_function<result<stopper>(const box&)>;

    /// Without a stopper the await cannot be interrupted: when start returns an empty one.
    explicit async(starter start) : start_(std::move(start)), box_(std::make_shared<detail::mailbox<T>>()) {}
    async(const async&) = delete;
    async& operator=(const async&) = delete;
    ~async() {
        if (box_->scope != nullptr) leave(); // the coroutine is destroyed while it waits
    }

    bool await_ready() const noexcept { return false; }
    template <class Promise>
    bool await_suspend(std::coroutine_handle<Promise> awaiting) {
        auto* scope = awaiting.promise().scope;
        if (std::exchange(scope->interrupted, false)) {
            box_->outcome.emplace(interrupted());
            return false;
        }
        box_->suspended = awaiting;
        box_->scope = scope;
        auto started = start_(box_);
        if (!started) {
            box_->scope = nullptr;
            box_->outcome.emplace(std::move(started).error());
            return false;
        }
        stop_ = *std::move(started);
        if (stop_) scope->waiting = this;
        return true;
    }
    result<T> await_resume() { return *std::move(box_->outcome); }

private:
    void interrupt() noexcept override {
        const auto suspended = box_->suspended;
        leave();
        box_->outcome.emplace(interrupted());
        suspended.resume();
    }
    void leave() noexcept {
        box_->scope->waiting = nullptr;
        box_->scope = nullptr;
        if (stop_) stop_();
    }
    static error interrupted() {
        return {.code = code::cancelled,
                .message = "interrupted: the operation was cancelled or the instance stops",
                .retryable = true};
    }

    starter start_;
    box box_;
    stopper stop_;
};

} // namespace gantry::sdk
