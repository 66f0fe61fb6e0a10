// instance<P>: one instance of the plugin class P behind the ABI's table of functions, with a barrier before each.
//
// P is constructed without a host and has
//   result<void> init(sdk::host&)                       required; the host stays valid until P is destroyed
//   static const void* capability(std::string_view id)  the table for a capability id, or nullptr
//   result<void> activate()                             starts work of its own
//   void drain(sdk::time_point deadline)                no new ops come: finish or cancel the open ones
//   void stop()                                         tells what still runs to end
//   result<void> config_check(std::string_view json)    judges without effect; with config_apply
//   result<void> config_apply(std::string_view json)    all or nothing
//   export_state, adopt                                 operations, both or neither (see capability.hpp for their
//   forms)
// all on the lane, all but init optional. P is destroyed at the end of stop(), while host services still work, after
// every function on a worker has returned: members may be std::jthread, timer, watch, subscription.
#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "../abi/plugin.h"
#include "capability.hpp"
#include "detail/context.hpp"
#include "host.hpp"

namespace gantry::sdk {

template <class P>
concept plugin_class = std::default_initializable<P> && requires(P p, host& h) {
    { p.init(h) } -> std::same_as<result<void>>;
};

namespace detail {

template <plugin_class P>
class instance final : public instance_base {
public:
    /// The ABI's create().
    static const gantry_plugin* create(const gantry_host* host, gantry_error_sink* sink) noexcept {
        return caught(sink, "the constructor", nullptr, [&]() -> const gantry_plugin* {
            auto made = std::make_unique<instance>(host);
            return &made.release()->table_;
        });
    }

    explicit instance(const gantry_host* host)
        : instance_base(&type_of<P>, std::make_shared<context>(host)), host_(owner) {
        plugin = &plugin_.emplace();
        fill_table();
    }

private:
    static instance& of(void* self) noexcept { return static_cast<instance&>(*static_cast<instance_base*>(self)); }

    template <class F>
    static auto caught(gantry_error_sink* sink, std::string_view function, const context* owner, F&& f) noexcept
        -> decltype(f()) {
        try {
            return f();
        } catch (...) {
            const auto e = thrown(owner != nullptr ? owner->instance() : "?", function);
            const auto status = report(sink, e);
            if constexpr (std::is_same_v<decltype(f()), gantry_status>) {
                return status;
            } else {
                return {};
            }
        }
    }
    /// Runs a member that returns result<void>.
    template <class F>
    static gantry_status step(void* self, gantry_error_sink* sink, std::string_view function, F&& f) noexcept {
        auto& me = of(self);
        const auto status = caught(sink, function, me.owner.get(), [&]() -> gantry_status {
            const result<void> outcome = f(me);
            return outcome ? GANTRY_OK : report(sink, outcome.error());
        });
        return status;
    }
    /// Runs a member that returns nothing.
    template <class F>
    static void step(void* self, std::string_view function, F&& f) noexcept {
        auto& me = of(self);
        try {
            f(me);
        } catch (...) {
            me.owner->log(GANTRY_LOG_ERROR, thrown(me.owner->instance(), function).message);
        }
    }

    static gantry_status init(void* self, gantry_error_sink* sink) noexcept {
        const auto status = step(self, sink, "init()", [](instance& me) -> result<void> {
            GANTRY_CHECK(me.owner->attach());
            return me.plugin_->init(me.host_);
        });
        if (status != GANTRY_OK) of(self).end();
        return status;
    }
    static const void* capability(void* self, gantry_str id) noexcept {
        (void)self;
        if constexpr (requires {
                          { P::capability(std::string_view{}) } -> std::convertible_to<const void*>;
                      }) {
            return caught(nullptr, "capability()", nullptr, [&]() -> const void* { return P::capability(view(id)); });
        } else {
            (void)id;
            return nullptr;
        }
    }
    static void stop(void* self) noexcept {
        of(self).owner->request_stop();
        step(self, "stop()", [](instance& me) {
            if constexpr (requires(P & p) { p.stop(); }) me.plugin_->stop();
            (void)me;
        });
        of(self).end();
    }
    static void destroy(void* self) noexcept { delete &of(self); }

    /// Leaves nothing of the plugin running, and nothing registered.
    void end() noexcept {
        owner->request_stop();
        owner->stop_all();
        owner->wait_for_workers();
        owner->kill_all();
        plugin = nullptr;
        plugin_.reset();
        owner->close();
    }

    void fill_table() noexcept {
        table_.struct_size = sizeof(table_);
        table_.self = static_cast<instance_base*>(this);
        table_.init = &init;
        table_.capability = &capability;
        table_.stop = &stop;
        table_.destroy = &destroy;
        if constexpr (requires(P & p) { p.activate(); }) {
            table_.activate = [](void* self, gantry_error_sink* sink) noexcept {
                return step(self, sink, "activate()",
                            [](instance& me) -> result<void> { return me.plugin_->activate(); });
            };
        }
        if constexpr (requires(P & p, time_point t) { p.drain(t); }) {
            table_.drain = [](void* self, std::int64_t deadline) noexcept {
                step(self, "drain()", [=](instance& me) { me.plugin_->drain(from_ns(deadline)); });
            };
        }
        constexpr bool checks = requires(P & p) { p.config_check(std::string_view{}); };
        constexpr bool applies = requires(P & p) { p.config_apply(std::string_view{}); };
        static_assert(checks == applies, "config_check and config_apply come together");
        if constexpr (checks && applies) {
            table_.config_check = [](void* self, gantry_str json, gantry_error_sink* sink) noexcept {
                return step(self, sink, "config_check()",
                            [=](instance& me) -> result<void> { return me.plugin_->config_check(view(json)); });
            };
            table_.config_apply = [](void* self, gantry_str json, gantry_error_sink* sink) noexcept {
                return step(self, sink, "config_apply()",
                            [=](instance& me) -> result<void> { return me.plugin_->config_apply(view(json)); });
            };
        }
        constexpr bool exports = requires { &P::export_state; };
        constexpr bool adopts = requires { &P::adopt; };
        static_assert(exports == adopts, "export_state and adopt come together");
        if constexpr (exports && adopts) {
            table_.export_state = op_fn<&P::export_state, P>;
            table_.adopt = op_fn<&P::adopt, P>;
        }
    }

    std::optional<P> plugin_;
    sdk::host host_;
    gantry_plugin table_{};
};

} // namespace detail
} // namespace gantry::sdk
