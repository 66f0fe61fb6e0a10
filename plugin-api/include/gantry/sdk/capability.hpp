// Tables of a capability's operations, made of member functions:
//
//   static const void* capability(std::string_view id) {
//       static constexpr auto network = sdk::capability<gantry_network>([](auto& table) {
//           table.add = sdk::op_fn<&bridge::add>;
//           table.del = sdk::op_fn<&bridge::del>;
//       });
//       return id == GANTRY_NETWORK ? &network : nullptr;
//   }
//
// The member's form says how it runs:
//   result<reply> f(const request&, op&)        on a worker thread; may block until the op's deadline
//   task<result<reply>> f(request, op)          a coroutine on the lane; must not block
//   void f(request, op)                         on the lane; keeps the op and completes it later, from any thread
// In each the request is the operation's own: bytes copied, descriptors duplicated. Each op is completed exactly once;
// an exception that leaves f becomes an `internal` error that names f.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

#include "../abi/op.h"
#include "detail/barrier.hpp"
#include "detail/context.hpp"
#include "message.hpp"
#include "op.hpp"
#include "task.hpp"

namespace gantry::sdk {

namespace detail {

template <class P>
inline constexpr char type_of = 0; ///< its address tells plugin classes apart without RTTI

/// What `self` points to in every call of the host.
struct instance_base {
    instance_base(const void* type, std::shared_ptr<context> owner) : type(type), owner(std::move(owner)) {}
    instance_base(const instance_base&) = delete;
    instance_base& operator=(const instance_base&) = delete;

    const void* type;
    std::shared_ptr<context> owner;
    void* plugin = nullptr; ///< the P; null once stopped

protected:
    ~instance_base() = default;
};

template <class P>
using blocking_form = result<reply> (P::*)(const request&, op&);
template <class P>
using coroutine_form = task<result<reply>> (P::*)(request, op);
template <class P>
using manual_form = void (P::*)(request, op);

template <class Member>
struct class_of;
template <class R, class P, class... Args>
struct class_of<R (P::*)(Args...)> {
    using type = P;
};
template <class R, class P, class... Args>
struct class_of<R (P::*)(Args...) noexcept> {
    using type = P;
};

/// Completes state with what f returns, or with what it throws.
template <class F>
void complete_with(op_state& state, std::string_view function, F&& f) noexcept {
    try {
        state.complete(f());
    } catch (...) {
        auto e = thrown(state.owner()->instance(), function);
        state.owner()->log(GANTRY_LOG_ERROR, e.message);
        state.complete(std::move(e));
    }
}

inline root drive(task<result<reply>> what, std::shared_ptr<op_state> state, std::string_view function) {
    auto own = std::move(what); // a parameter would be destroyed after the scope that its awaits refer to
    try {
        auto outcome = co_await std::move(own);
        state->complete(std::move(outcome));
    } catch (...) {
        auto e = thrown(state->owner()->instance(), function);
        state->owner()->log(GANTRY_LOG_ERROR, e.message);
        state->complete(std::move(e));
    }
}

template <auto Member, class P>
void start(P& plugin, request in, std::shared_ptr<op_state> state, std::string_view function) {
    using form = decltype(Member);
    if constexpr (std::is_convertible_v<form, blocking_form<P>>) {
        auto& owner = *state->owner();
        auto accepted = owner.submit([&plugin, in = std::move(in), state, function] {
            complete_with(*state, function, [&] {
                op handle(state);
                return (plugin.*Member)(in, handle);
            });
        });
        if (!accepted) state->complete(std::move(accepted).error());
    } else if constexpr (std::is_convertible_v<form, coroutine_form<P>>) {
        const auto scope = drive((plugin.*Member)(std::move(in), op(state)), state, function).start(state->owner());
        if (!state->done()) state->on_cancel([scope] { scope->interrupt(); });
    } else {
        static_assert(std::is_convertible_v<form, manual_form<P>>,
                      "an operation is result<reply>(const request&, op&), task<result<reply>>(request, op) or "
                      "void(request, op)");
        (plugin.*Member)(std::move(in), op(state));
    }
}

template <auto Member, class P>
gantry_status thunk(void* self, const gantry_request* in, gantry_op number) noexcept {
    auto& base = *static_cast<instance_base*>(self);
    if (base.plugin == nullptr) return GANTRY_UNAVAILABLE;
    if (base.type != &type_of<P>) {
        base.owner->log(GANTRY_LOG_ERROR,
                        "an operation of another class: write op_fn<&Base::member, Plugin> for inherited ones");
        return GANTRY_INTERNAL;
    }
    constexpr std::string_view function = name_of<Member>();
    std::shared_ptr<op_state> state;
    try {
        state = std::make_shared<op_state>(base.owner, number, function);
    } catch (...) {
        return GANTRY_RESOURCE; // not taken
    }
    try {
        auto own = copy(*in);
        if (own) {
            start<Member>(*static_cast<P*>(base.plugin), *std::move(own), state, function);
        } else {
            state->complete(std::move(own).error());
        }
    } catch (...) {
        auto e = thrown(base.owner->instance(), function);
        base.owner->log(GANTRY_LOG_ERROR, e.message);
        state->complete(std::move(e));
    }
    return GANTRY_OK;
}

} // namespace detail

/// The ABI's function for a member function of the plugin class P.
template <auto Member, class P = typename detail::class_of<decltype(Member)>::type>
inline constexpr gantry_op_fn op_fn = &detail::thunk<Member, P>;

/// A table with struct_size set and what fill sets; operations that are left out are not offered.
template <class Table, class Fill>
constexpr Table capability(Fill fill) noexcept {
    Table table{};
    table.struct_size = sizeof(Table);
    fill(table);
    return table;
}

} // namespace gantry::sdk
