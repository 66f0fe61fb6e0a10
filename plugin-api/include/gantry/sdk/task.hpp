// task<T>: a coroutine that runs on the instance's lane.
//
// Lazy: it starts when it is awaited, and resumes its awaiter when it ends. A loop over tasks that end at once does not
// grow the stack, also where the compiler makes no tail calls (-O0, sanitizers). The task owns the frame. Parameters
// must be values (or outlive the coroutine); a lambda that is a coroutine must not capture. With GCC 12 no argument
// inside a co_await expression may be a temporary aggregate or a lambda that captures by value.
//
// Cancelling an op, or stopping the instance, interrupts the await its coroutine is suspended in, once: that await
// returns the error `cancelled`. Later awaits work again, so a coroutine can clean up with them. What is still
// suspended when the instance has stopped is destroyed.
#pragma once

#include <coroutine>
#include <exception>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "detail/context.hpp"

namespace gantry::sdk {

template <class T>
class task;

namespace detail {

/// An await that is suspended. [lane]
class waiter {
public:
    virtual void interrupt() noexcept = 0; ///< resume with `cancelled`, or do nothing when that is not possible

protected:
    ~waiter() = default;
};

/// A chain of coroutines that await each other. [lane]
struct coroutine_scope {
    std::shared_ptr<context> owner;
    waiter* waiting = nullptr;
    bool interrupted = false; ///< a cancellation that no await has seen yet
    bool told = false;

    void interrupt() noexcept {
        if (std::exchange(told, true)) return;
        if (waiting != nullptr) {
            waiting->interrupt();
        } else {
            interrupted = true;
        }
    }
};

struct promise_base {
    struct final_awaiter {
        bool await_ready() const noexcept { return false; }
        template <class Promise>
        std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> ended) const noexcept {
            auto& promise = ended.promise();
            promise.finished = true;
            return promise.starting ? std::noop_coroutine() : promise.continuation;
        }
        void await_resume() const noexcept {}
    };
    std::suspend_always initial_suspend() const noexcept { return {}; }
    final_awaiter final_suspend() const noexcept { return {}; }
    void unhandled_exception() noexcept { thrown = std::current_exception(); }

    std::coroutine_handle<> continuation{};
    bool starting = false; ///< the awaiter's await_suspend is on the stack
    bool finished = false;
    coroutine_scope* scope = nullptr;
    std::exception_ptr thrown;
};

template <class T>
struct promise final : promise_base {
    task<T> get_return_object() noexcept;
    template <class U = T>
    requires std::is_convertible_v<U&&, T>
    void return_value(U&& u) { value.emplace(std::forward<U>(u)); }
    T take() {
        if (thrown) std::rethrow_exception(thrown);
        return *std::move(value);
    }
    std::optional<T> value;
};

template <>
struct promise<void> final : promise_base {
    task<void> get_return_object() noexcept;
    void return_void() const noexcept {}
    void take() const {
        if (thrown) std::rethrow_exception(thrown);
    }
};

} // namespace detail

template <class T>
class [[nodiscard]] task {
public:
    using promise_type = detail::promise<T>;
    using value_type = T;

    task() = default;
    explicit task(std::coroutine_handle<promise_type> frame) noexcept : frame_(frame) {}
    task(task&& other) noexcept : frame_(std::exchange(other.frame_, {})) {}
    task& operator=(task&& other) noexcept {
        task(std::move(other)).swap(*this);
        return *this;
    }
    ~task() {
        if (frame_) frame_.destroy();
    }
    void swap(task& other) noexcept { std::swap(frame_, other.frame_); }

    struct awaiter {
        bool await_ready() const noexcept { return false; }
        template <class Promise>
        bool await_suspend(std::coroutine_handle<Promise> parent) const noexcept {
            auto& promise = frame.promise();
            promise.continuation = parent;
            promise.scope = parent.promise().scope;
            promise.starting = true;
            frame.resume();
            promise.starting = false;
            return !promise.finished;
        }
        T await_resume() const { return frame.promise().take(); }
        std::coroutine_handle<promise_type> frame;
    };
    awaiter operator co_await() && noexcept { return awaiter{frame_}; }

private:
    std::coroutine_handle<promise_type> frame_{};
};

namespace detail {

template <class T>
task<T> promise<T>::get_return_object() noexcept {
    return task<T>(std::coroutine_handle<promise>::from_promise(*this));
}
inline task<void> promise<void>::get_return_object() noexcept {
    return task<void>(std::coroutine_handle<promise>::from_promise(*this));
}

/// The outermost coroutine of a scope: starts at once, frees itself at its end, or in kill(). [lane]
class root {
public:
    struct promise_type;
    using handle = std::coroutine_handle<promise_type>;
    struct promise_type final : stoppable {
        promise_type() = default;
        ~promise_type() {
            if (own->owner) own->owner->remove(this);
        }
        root get_return_object() noexcept { return root(handle::from_promise(*this)); }
        std::suspend_always initial_suspend() const noexcept { return {}; }
        std::suspend_never final_suspend() const noexcept { return {}; }
        void return_void() const noexcept {}
        void unhandled_exception() noexcept {
            own->owner->log(GANTRY_LOG_ERROR, detail::thrown(own->owner->instance(), "a coroutine").message);
        }
        void request_stop() noexcept override { own->interrupt(); }
        void kill() noexcept override { handle::from_promise(*this).destroy(); }
        std::shared_ptr<coroutine_scope> own = std::make_shared<coroutine_scope>();
        coroutine_scope* scope = own.get();
    };

    explicit root(handle frame) noexcept : frame_(frame) {}
    /// Runs it up to its first suspension. The scope outlives the coroutine.
    std::shared_ptr<coroutine_scope> start(std::shared_ptr<context> owner) const {
        auto scope = frame_.promise().own;
        owner->add(&frame_.promise());
        scope->owner = std::move(owner);
        frame_.resume();
        return scope;
    }

private:
    handle frame_;
};

} // namespace detail
} // namespace gantry::sdk
