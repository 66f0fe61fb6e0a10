// A callable that need not be copyable (std::move_only_function is C++23).
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

namespace gantry::sdk {

template <class Signature>
class unique_function;

template <class R, class... Args>
class unique_function<R(Args...)> {
public:
    unique_function() = default;
    template <class F>
    requires(!std::is_same_v<std::remove_cvref_t<F>, unique_function> &&
             std::is_invocable_r_v<R, std::remove_cvref_t<F>&, Args...>) unique_function(F&& f)
        : held_(std::make_unique<model<std::remove_cvref_t<F>>>(std::forward<F>(f))) {}

    R operator()(Args... args) { return held_->call(std::forward<Args>(args)...); }
    explicit operator bool() const noexcept { return held_ != nullptr; }

private:
    struct concept_base {
        virtual ~concept_base() = default;
        virtual R call(Args... args) = 0;
    };
    template <class F>
    struct model final : concept_base {
        explicit model(F&& f) : f_(std::move(f)) {}
        explicit model(const F& f) : f_(f) {}
        R call(Args... args) override { return f_(std::forward<Args>(args)...); }
        F f_;
    };
    std::unique_ptr<concept_base> held_;
};

} // namespace gantry::sdk
