#include "core/host/plugin_host.hpp"

#include <unistd.h>

#include <algorithm>
#include <optional>
#include <set>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/files.hpp"
#include "core/host/bound_client.hpp"
#include "core/host/host_metrics.hpp"
#include "core/host/instance.hpp"
#include "gantry/abi/draft/runtime.h"

namespace gantry::core {

namespace asio = boost::asio;
using clock_type = std::chrono::steady_clock;

namespace {

/// Waits on the loop for something that another thread says.
struct latch {
    explicit latch(asio::io_context& loop) : timer(loop, clock_type::time_point::max()) {}
    asio::steady_timer timer;
    std::optional<result<void>> outcome;
};

void set_latch(asio::io_context& loop, const std::shared_ptr<latch>& waiting, result<void> outcome) {
    asio::post(loop, [waiting, outcome = std::move(outcome)]() mutable {
        if (waiting->outcome) return;
        waiting->outcome = std::move(outcome);
        waiting->timer.cancel();
    });
}

/// What instances share, and what a thread that never ended may still use.
struct shared_parts {
    alarm_clock alarms;
    op_journal journal;
    std::unique_ptr<crash_log> crashes;
    std::unique_ptr<helper_groups> groups;
    node_context node;
};

class host_impl final : public plugin_host {
public:
    host_impl(asio::io_context& loop, checked_config checked)
        : loop_(loop), config_(std::move(checked.config)), bound_(std::move(checked.bound)), shared_(std::make_unique<shared_parts>()) {}

    ~host_impl() override {
        shared_->alarms.stop();
        const auto deadline = clock_type::now() + std::chrono::seconds(2);
        bool all_ended = true;
        for (auto& one : instances_) {
            if (one->end(deadline)) continue;
            all_ended = false;
            static_cast<void>(one.release()); // its thread is somewhere in the plugin, and may come back
        }
        if (all_ended) return;
        if (shared_->groups) shared_->groups->leave();
        static_cast<void>(shared_.release());
    }

    result<void> open(std::vector<chosen_plugin> plugins, event_port events) {
        const auto& node = config_.node;
        GANTRY_TRY(shared_->crashes, crash_log::open(node.state_root() + "/host"));
        GANTRY_TRY(const auto quarantined, shared_->crashes->judge());
        watch_crashes();
        if (auto groups = helper_groups::open(node.instance); groups) shared_->groups = *std::move(groups);
        else log::warn("helpers run without cgroups", {{"error", groups.error().message}});
        auto& context = shared_->node;
        context.node = node;
        context.loop = &loop_;
        context.alarms = &shared_->alarms;
        context.journal = &shared_->journal;
        context.crashes = shared_->crashes.get();
        context.groups = shared_->groups.get();
        context.events = std::make_shared<const event_port>(std::move(events));
        context.peer = [this](const instance& caller, std::string_view capability) { return peer_of(caller, capability); };
        GANTRY_TRY(context.library_dir, choose_library_dir({node.run_root() + "/lib", node.state_root() + "/lib"}));
        GANTRY_TRY(const auto libraries, install(plugins, context.library_dir));
        for (std::uint32_t i = 0; i < plugins.size(); ++i) {
            GANTRY_TRY(auto made, instance::make(context, config_.plugins[i], std::move(plugins[i]), libraries[i], i));
            if (const auto found = quarantined.find(made->name()); found != quarantined.end()) {
                made->set_state(plugin_state::quarantined, made->name() + " is quarantined: " + found->second);
                log::error("plugin is quarantined", {{"plugin", made->name()}, {"reason", found->second}});
            }
            instances_.push_back(std::move(made));
        }
        make_clients();
        watch_lanes();
        return {};
    }

    asio::awaitable<result<void>> start() override {
        const auto order = start_order();
        for (auto* one : order)
            if (one->state() != plugin_state::quarantined) static_cast<void>(co_await bring_up(*one));
        for (auto* one : order)
            if (one->state() == plugin_state::initialised) static_cast<void>(co_await switch_on(*one));
        warn_of_unused_network();
        co_return result<void>{};
    }

    asio::awaitable<void> stop(std::chrono::milliseconds timeout) override {
        const auto deadline = clock_type::now() + timeout;
        auto order = start_order();
        std::reverse(order.begin(), order.end()); // who calls others ends before them
        for (auto* one : order) co_await shut_down(*one, deadline);
    }

    plugin_client* client(std::string_view capability) override {
        const auto all = clients(capability);
        return all.empty() ? nullptr : all.front();
    }

    std::vector<plugin_client*> clients(std::string_view capability) override {
        std::vector<plugin_client*> out;
        const auto bound = bound_.instances.find(std::string(capability));
        if (bound == bound_.instances.end()) return out;
        for (const auto& name : bound->second)
            if (auto* one = client_of(name, capability)) out.push_back(one);
        return out;
    }

    plugin_client* runtime(std::string_view handler) override {
        const auto bound = bound_.handlers.find(std::string(handler));
        return bound == bound_.handlers.end() ? nullptr : client_of(bound->second, GANTRY_RUNTIME);
    }

    plugin_client* client_of(std::string_view name, std::string_view capability) override {
        const auto found = clients_.find({std::string(name), std::string(capability)});
        return found == clients_.end() ? nullptr : found->second.get();
    }

    std::vector<plugin_info> plugins() const override {
        std::vector<plugin_info> out;
        for (const auto& one : instances_) {
            const auto totals = one->ops().totals();
            out.push_back({.name = one->name(),
                           .use = one->settings().use,
                           .id = one->chosen().plugin.id,
                           .version = one->version(),
                           .file = one->sha256().empty() ? "" : one->origin(),
                           .sha256 = one->sha256(),
                           .state = one->state(),
                           .reason = one->reason(),
                           .capabilities = one->chosen().plugin.capabilities,
                           .ops_done = totals.done,
                           .ops_failed = totals.failed,
                           .ops_open = totals.open,
                           .ops_abandoned = totals.abandoned,
                           .faults = one->faults(),
                           .log_level = one->log().level()});
        }
        return out;
    }

    result<void> set_log_level(std::string_view name, core::log_level level) override {
        auto* one = find(name);
        if (!one) return unknown(name);
        one->log().set_level(level);
        return {};
    }

    asio::awaitable<result<void>> enable(std::string name) override {
        auto* one = find(name);
        if (!one) co_return unknown(name);
        const auto state = one->state();
        if (state == plugin_state::hung) co_return error{.code = code::busy, .message = one->reason(), .retryable = true};
        const bool down = state == plugin_state::quarantined || state == plugin_state::failed || state == plugin_state::stopped;
        if (!down) co_return error{.code = code::exists, .message = name + " is " + std::string(to_string(state)) + " already"};
        GANTRY_CO_CHECK(shared_->crashes->lift(name));
        auto fresh = co_await on_lane(*one, [](instance& it) { return it.refresh_file(); });
        if (!fresh) co_return fresh;
        auto up = co_await bring_up(*one);
        if (!up) co_return up;
        auto on = co_await switch_on(*one);
        co_return on;
    }

    std::string metrics_text() const override { return host_metrics_text(instances_); }
    op_journal& journal() override { return shared_->journal; }

private:
    /// Copies the verified bytes to where they are loaded from, and lets go of them.
    static result<std::vector<std::string>> install(const std::vector<chosen_plugin>& plugins, const std::string& dir) {
        std::vector<std::string> libraries;
        for (const auto& one : plugins) {
            libraries.emplace_back();
            if (!one.file) continue;
            GANTRY_TRY(libraries.back(), install_verified(*one.file, one.plugin.id, dir));
        }
        for (const auto& one : plugins)
            if (one.file) one.file->bytes = {};
        remove_other_copies(dir, libraries);
        return libraries;
    }

    instance* find(std::string_view name) const {
        for (const auto& one : instances_)
            if (one->name() == name) return one.get();
        return nullptr;
    }

    error unknown(std::string_view name) const {
        std::string known;
        for (const auto& one : instances_) known += (known.empty() ? "" : ", ") + one->name();
        return {.code = code::not_found, .message = "no plugin instance \"" + std::string(name) + "\", there are " + known};
    }

    void make_clients() {
        for (const auto& one : instances_)
            for (const auto& capability : one->chosen().plugin.capabilities)
                clients_.emplace(std::pair{one->name(), capability}, std::make_unique<bound_client>(loop_, *one, capability));
    }

    /// From any thread: instances_ and bound_ do not change after open().
    instance* peer_of(const instance& caller, std::string_view capability) const {
        const auto bound = bound_.instances.find(std::string(capability));
        if (bound == bound_.instances.end()) return nullptr;
        for (const auto& name : bound->second)
            if (auto* one = find(name); one && one != &caller) return one;
        return nullptr;
    }

    /// Peers before those that call them, else the order of the configuration.
    std::vector<instance*> start_order() const {
        std::vector<instance*> order;
        std::set<const instance*> seen;
        const std::function<void(instance*)> visit = [&](instance* one) {
            if (!seen.insert(one).second) return;
            for (const auto& id : one->chosen().plugin.peers)
                if (auto* peer = peer_of(*one, id)) visit(peer);
            order.push_back(one);
        };
        for (const auto& one : instances_) visit(one.get());
        return order;
    }

    /// Runs `step` on the instance's lane; its lane's hanging ends the waiting, not the step.
    template <class Step>
    asio::awaitable<result<void>> on_lane(instance& one, Step step) {
        const auto waiting = std::make_shared<latch>(loop_);
        auto& loop = loop_;
        one.on_hang([&loop, &one, waiting] { set_latch(loop, waiting, error{.code = code::timeout, .message = one.reason(), .retryable = true}); });
        one.lane().post([&loop, &one, waiting, step] { set_latch(loop, waiting, step(one)); });
        while (!waiting->outcome) {
            const auto [ec] = co_await waiting->timer.async_wait(asio::as_tuple(asio::use_awaitable));
            if (!waiting->outcome && ec) co_return error{.code = code::cancelled, .message = one.name() + ": waiting for its lane was cancelled"};
        }
        one.on_hang(nullptr);
        co_return *std::move(waiting->outcome);
    }

    void failed(instance& one, const error& e) {
        if (one.state() == plugin_state::hung) return; // the watchdog has said so
        one.set_state(plugin_state::failed, e.message);
        log::error("plugin does not start", {{"plugin", one.name()}, {"error", e.message}});
    }

    asio::awaitable<result<void>> bring_up(instance& one) {
        auto outcome = co_await on_lane(one, [](instance& it) { return it.load_and_init(); });
        if (outcome) one.set_state(plugin_state::initialised);
        else failed(one, outcome.error());
        co_return outcome;
    }

    asio::awaitable<result<void>> switch_on(instance& one) {
        auto outcome = co_await on_lane(one, [](instance& it) { return it.activate(); });
        if (outcome) one.set_state(plugin_state::active);
        else failed(one, outcome.error());
        co_return outcome;
    }

    asio::awaitable<void> shut_down(instance& one, clock_type::time_point deadline) {
        const auto state = one.state();
        if (state == plugin_state::hung || state == plugin_state::quarantined) co_return;
        if (state == plugin_state::active) one.set_state(plugin_state::draining);
        one.ops().cancel_endless();
        if (state == plugin_state::active) {
            [[maybe_unused]] const auto drained = co_await on_lane(one, [deadline](instance& it) {
                it.drain(deadline);
                return result<void>{};
            });
            asio::steady_timer pause(loop_);
            while (one.ops().totals().open != 0 && clock_type::now() < deadline && one.state() != plugin_state::hung) {
                pause.expires_after(std::chrono::milliseconds(2));
                co_await pause.async_wait(asio::as_tuple(asio::use_awaitable));
            }
        }
        const auto until = std::max(deadline, clock_type::now() + std::chrono::milliseconds(200));
        auto outcome = co_await on_lane(one, [until](instance& it) {
            it.stop(until);
            return result<void>{};
        });
        if (outcome && state == plugin_state::failed) co_return; // it keeps its reason
        if (outcome) one.set_state(plugin_state::stopped);
        else one.ops().fail_all(one.name() + " does not stop");
    }

    /// Only the table of a running runtime says for certain who calls the network.
    void warn_of_unused_network() {
        const auto network = config_.bind.instances.find("network");
        if (network == config_.bind.instances.end()) return;
        const auto runtimes = clients(GANTRY_RUNTIME);
        const auto owns = [](plugin_client* one) { return (one->flags() & GANTRY_RUNTIME_OWNS_NETWORK) != 0; };
        if (runtimes.empty() || !std::all_of(runtimes.begin(), runtimes.end(), owns)) return;
        log::warn("bind.network has no effect: every bound runtime calls its network itself", {{"plugin", network->second.front()}});
    }

    /// Looks at every lane at a quarter of the shortest stall time, and again.
    void watch_lanes() {
        auto shortest = std::chrono::milliseconds(4000);
        for (const auto& one : instances_) shortest = std::min(shortest, one->settings().limits.lane_stall);
        const auto period = std::max(shortest / 4, std::chrono::milliseconds(20));
        shared_->alarms.set(clock_type::now() + period, [this] {
            for (const auto& one : instances_) one->watch(clock_type::now());
            watch_lanes();
        });
    }

    asio::io_context& loop_;
    const node_config config_;
    const bindings bound_;
    std::unique_ptr<shared_parts> shared_;
    std::vector<std::unique_ptr<instance>> instances_;
    std::map<std::pair<std::string, std::string>, std::unique_ptr<bound_client>> clients_;
};

result<std::unique_ptr<plugin_host>> make_host(asio::io_context& loop, checked_config checked, event_port events) {
    auto plugins = std::move(checked.plugins);
    auto host = std::make_unique<host_impl>(loop, std::move(checked));
    GANTRY_CHECK(host->open(std::move(plugins), std::move(events)));
    return std::unique_ptr<plugin_host>(std::move(host));
}

} // namespace

result<std::unique_ptr<plugin_host>> plugin_host::create(asio::io_context& loop, checked_config checked, event_port events) {
    return make_host(loop, std::move(checked), std::move(events));
}

result<std::unique_ptr<plugin_host>> plugin_host::create(asio::io_context& loop, plugin_host_options options) {
    parsed_config parsed{.config = std::move(options.config), .faults = fault_list("node config", {})};
    GANTRY_TRY(auto checked, check_config(std::move(parsed), {.dirs = std::move(options.plugin_dirs), .builtin = std::move(options.builtin)}));
    for (const auto& warning : checked.warnings) log::warn(warning);
    return make_host(loop, std::move(checked), std::move(options.events));
}

} // namespace gantry::core
