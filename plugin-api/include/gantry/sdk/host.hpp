// host: what gantry offers an instance. A copyable handle, legal from init() until stop() returns; after that every
// call is a no-op or an error, never a crash. [any] unless a comment says otherwise. An absent service gives
// `unsupported`, or silence where nothing is returned; ask with require() in init() for what the plugin cannot work
// without.
#pragma once

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "await.hpp"
#include "handles.hpp"
#include "helper.hpp"
#include "message.hpp"
#include "op.hpp"
#include "peer.hpp"
#include "task.hpp"

namespace gantry::sdk {

enum class level : std::int32_t {
    debug = GANTRY_LOG_DEBUG,
    info = GANTRY_LOG_INFO,
    warn = GANTRY_LOG_WARN,
    error = GANTRY_LOG_ERROR,
};

struct field {
    std::string_view key;
    std::string_view value;
};
using fields = std::initializer_list<field>;

class host {
public:
    explicit host(std::shared_ptr<detail::context> context) : context_(std::move(context)) {}

    /// An error that names the first of the services that this gantry lacks.
    result<void> require(std::initializer_list<std::string_view> service_ids) const;
    /// Stops when the instance does: for threads of the plugin's own, which must have ended when stop() returns or, if
    /// they are members (std::jthread), when the plugin's destructor does.
    std::stop_token stop_token() const { return context_->stop_token(); }

    // ---- config ---------------------------------------------------------------------------------------------------
    std::string_view instance() const noexcept { return config(&gantry_config_service::instance); }
    std::string_view node_name() const noexcept { return config(&gantry_config_service::node_name); }
    /// Every kernel object's name must derive from it.
    std::string_view node_instance() const noexcept { return config(&gantry_config_service::node_instance); }
    std::string_view state_dir() const noexcept { return config(&gantry_config_service::state_dir); }
    std::string_view run_dir() const noexcept { return config(&gantry_config_service::run_dir); }
    /// The validated config with defaults filled in, JSON.
    std::string_view config_json() const noexcept { return config(&gantry_config_service::json); }

    // ---- log ------------------------------------------------------------------------------------------------------
    /// Ask before formatting an expensive line.
    bool enabled(level at) const noexcept;
    void log(level at, std::string_view message, fields with = {}) const noexcept;
    void debug(std::string_view message, fields with = {}) const noexcept { log(level::debug, message, with); }
    void info(std::string_view message, fields with = {}) const noexcept { log(level::info, message, with); }
    void warn(std::string_view message, fields with = {}) const noexcept { log(level::warn, message, with); }
    void error(std::string_view message, fields with = {}) const noexcept { log(level::error, message, with); }

    // ---- metrics, defined in init() -------------------------------------------------------------------------------
    result<metric> counter(std::string_view name, std::string_view help) const {
        return define(GANTRY_METRIC_COUNTER, name, help);
    }
    result<metric> gauge(std::string_view name, std::string_view help) const {
        return define(GANTRY_METRIC_GAUGE, name, help);
    }
    result<metric> histogram(std::string_view name, std::string_view help) const {
        return define(GANTRY_METRIC_HISTOGRAM, name, help);
    }

    // ---- events ---------------------------------------------------------------------------------------------------
    /// State for the node's bus: an unread event of the same topic and key is replaced.
    void publish(std::string_view topic, std::string_view key, std::string_view bytes) const noexcept;
    result<subscription> subscribe(std::string_view topic, unique_function<sdk::subscription::signature> f) const;
    /// A Kubernetes Event about a pod (JSON: type, reason, message, pod {namespace, name, uid}).
    void emit(std::string_view event_json) const noexcept;

    // ---- time, descriptors, threads -------------------------------------------------------------------------------
    result<timer> after(std::chrono::nanoseconds delay, unique_function<void()> f) const;
    /// f(fd, events) while fd is ready; events: EPOLLIN, EPOLLOUT, level-triggered.
    result<watch> watch_fd(int fd, std::uint32_t events, unique_function<watch::signature> f) const;
    /// Runs f on a worker thread, where it may block. The instance stops only when f has returned.
    result<void> submit(unique_function<void()> f) const { return context_->submit(std::move(f)); }
    /// Runs f on the lane, after what is queued there.
    void post(unique_function<void()> f) const { context_->post(std::move(f)); }

    // ---- state: small durable values (<= 64 KiB) by key ([A-Za-z0-9._-]{1,128}) [worker] ---------------------------
    result<void> put(std::string_view key, std::string_view value) const;
    result<void> erase(std::string_view key) const { return put(key, {}); }
    /// Error `not_found` if there is none.
    result<std::string> get(std::string_view key) const;
    result<std::vector<std::string>> keys() const;

    // ---- helper processes -----------------------------------------------------------------------------------------
    /// Starts one; on_exit runs on the lane. Gives its pid.
    result<std::int64_t> spawn(const command& what, unique_function<void(exit_status)> on_exit) const {
        return detail::spawn(context_, what, std::move(on_exit));
    }
    void kill(std::int64_t pid) const noexcept { detail::kill(*context_, pid); }
    /// Runs one to its end; kills it when stop is requested. [worker]
    result<exit_status> run_wait(const command& what, std::stop_token stop = {}) const {
        return detail::run_wait(context_, what, stop.stop_possible() ? std::move(stop) : stop_token());
    }

    // ---- peers: op (its member name, "add") of the instance bound for capability, one of the descriptor's `requires`
    // ----
    /// f runs on the lane, exactly once if this succeeds.
    result<void> call(std::string_view capability, std::string_view op, const request& with, time_point deadline,
                      unique_function<void(result<reply>)> f) const {
        return detail::call_peer(context_, capability, op, with, deadline, std::move(f));
    }
    /// Waits for the answer, or until stop is requested. [worker]
    result<reply> call_wait(std::string_view capability, std::string_view op, const request& with, time_point deadline,
                            std::stop_token stop = {}) const {
        return detail::call_peer_wait(context_, capability, op, with, deadline,
                                      stop.stop_possible() ? std::move(stop) : stop_token());
    }

    // ---- for coroutines: co_await gives a result [lane] -------------------------------------------------------------
    // Arguments are used in place, so they must be variables of the coroutine, not temporaries: GCC 12 destroys a
    // temporary aggregate or capturing lambda inside a co_await expression twice. Breaking this does not compile.

    /// Runs a coroutine beside the operations, until it ends or the instance stops.
    void launch(task<void> what) const;
    async<void> sleep(std::chrono::nanoseconds delay) const;
    /// Runs f on a worker; gives what it returns (T or result<T>). Not interruptible, so f may use the coroutine's
    /// variables: capture by reference.
    template <class F>
    auto work(F&& f) const;
    async<exit_status> run(const command& what) const;
    async<exit_status> run(const command&& what) const = delete;
    async<reply> call(std::string_view capability, std::string_view op, const request& with, time_point deadline) const;
    async<reply> call(std::string_view capability, std::string_view op, const request&& with,
                      time_point) const = delete;
    async<reply> call(std::string_view capability, std::string_view op, std::string bytes, time_point deadline) const;
    /// Like op.item(), without blocking the lane.
    async<void> send(sdk::op to, const reply& element) const;
    async<void> send(sdk::op to, const reply&& element) const = delete;
    async<void> send(sdk::op to, std::string bytes) const;

    const std::shared_ptr<detail::context>& context() const noexcept { return context_; }

private:
    std::string_view config(gantry_str gantry_config_service::*member) const noexcept {
        const auto* service = context_->host().config;
        return service != nullptr ? view(service->*member) : std::string_view{};
    }
    result<metric> define(std::int32_t kind, std::string_view name, std::string_view help) const;

    std::shared_ptr<detail::context> context_;
};

} // namespace gantry::sdk

#include "detail/host.ipp"
