// The service tables of fake::host.
#pragma once

#include "../fake_host.h"

namespace gantry::fake {

inline host::host(settings with) : with_(std::move(with)), workers_(with_.workers) {
    abi_.base.struct_size = sizeof(gantry_host);
    abi_.base.abi_major = GANTRY_ABI_MAJOR;
    abi_.base.abi_minor = GANTRY_ABI_MINOR;
    abi_.base.get = &host::get;
    abi_.self = this;
    fill_tables();
    for (const auto& id : with_.missing) tables_.erase(id);
}

inline const void* host::get(const gantry_host* base, gantry_str id) {
    const auto* self = reinterpret_cast<const owned_host*>(base)->self;
    auto& h = use(self, "gantry_host.get");
    const auto found = h.tables_.find(to_string(id));
    return found != h.tables_.end() ? found->second : nullptr;
}

inline void host::set_open(bool open) {
    if (!open) {
        loop_.revoke();
        const std::lock_guard<std::mutex> lock(mutex_);
        subscribers_.clear();
    }
    open_ = open;
}

inline void host::send_event(const std::string& topic, const std::string& key, const std::string& bytes) {
    loop_.post([this, topic, key, bytes] {
        std::vector<std::uint64_t> handles;
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            for (const auto& one : subscribers_) {
                if (one.second.topic == topic) handles.push_back(one.first);
            }
        }
        for (const auto handle : handles) {
            subscriber to{};
            {
                const std::lock_guard<std::mutex> lock(mutex_);
                const auto found = subscribers_.find(handle); // the one before may have ended this one
                if (found == subscribers_.end()) continue;
                to = found->second;
            }
            to.fn(to.context, to_str(topic), to_str(key), to_str(bytes));
        }
    });
}

inline void host::deliver(const outcome& end, gantry_reply_fn fn, void* context) {
    std::vector<std::int32_t> numbers;
    for (const auto& one : end.fds) numbers.push_back(*one);
    const gantry_error e{sizeof(gantry_error),        end.error.code,           end.error.sys_errno,
                         end.error.retryable ? 1 : 0, end.error.retry_after_ms, to_str(end.error.message),
                         to_str(end.error.detail)};
    const gantry_reply reply{sizeof(gantry_reply), static_cast<std::uint32_t>(numbers.size()), numbers.data(),
                             to_str(end.bytes), end.ok() ? nullptr : &e};
    fn(context, &reply);
}

inline gantry_status host::call_peer(gantry_str capability, gantry_str op, const gantry_request& request,
                                     gantry_reply_fn fn, void* context, gantry_error_sink* error) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = peers_.find({to_string(capability), to_string(op)});
    if (found == peers_.end()) {
        const std::string text = "no peer offers " + to_string(capability) + ' ' + to_string(op);
        const gantry_error e{sizeof(gantry_error), GANTRY_UNAVAILABLE, 0, 1, 0, to_str(text), {nullptr, 0}};
        if (error != nullptr) error->set(error, &e);
        return GANTRY_UNAVAILABLE;
    }
    peer_threads_.emplace_back([this, fn, context, answer = found->second, bytes = to_string(request.bytes),
                                key = to_string(request.key), fds = dup_fds(request.fds, request.fd_count)] {
        loop_.post([this, fn, context, end = answer(bytes, fds, key)] {
            if (open_) deliver(end, fn, context);
        });
    });
    return GANTRY_OK;
}

inline void host::fill_tables() {
    const auto offer = [this](const char* id, auto& table) {
        table.struct_size = sizeof(table);
        table.host = this;
        tables_[id] = &table;
    };

    offer(GANTRY_SERVICE_OP, op_);
    // Late completions are the business of ops: it knows the operation.
    op_.complete = [](const void* h, gantry_op op, const gantry_reply* reply) { of(h).ops_.complete(op, *reply); };
    op_.item = [](const void* h, gantry_op op, const gantry_reply* reply) {
        return use(h, GANTRY_SERVICE_OP).ops_.item(op, *reply);
    };
    op_.progress = [](const void* h, gantry_op op, const gantry_progress* p) {
        use(h, GANTRY_SERVICE_OP).ops_.report(op, *p);
    };
    op_.deadline_ns = [](const void* h, gantry_op op) { return use(h, GANTRY_SERVICE_OP).ops_.deadline_ns(op); };
    op_.is_cancelled = [](const void* h, gantry_op op) {
        return use(h, GANTRY_SERVICE_OP).ops_.is_cancelled(op) ? 1 : 0;
    };
    op_.on_cancel = [](const void* h, gantry_op op, gantry_cancel_fn fn, void* context) {
        use(h, GANTRY_SERVICE_OP).ops_.on_cancel(op, fn, context);
    };

    offer(GANTRY_SERVICE_LOG, log_);
    log_.enabled = [](const void* h, std::int32_t level) {
        return level >= use(h, GANTRY_SERVICE_LOG).log_level_ ? 1 : 0;
    };
    log_.write = [](const void* h, std::int32_t level, gantry_str message, const gantry_field* fields,
                    std::uint32_t count) { use(h, GANTRY_SERVICE_LOG).recorder_.log(level, message, fields, count); };

    offer(GANTRY_SERVICE_METRICS, metrics_);
    metrics_.define = [](const void* h, std::int32_t kind, gantry_str name, gantry_str) {
        return use(h, GANTRY_SERVICE_METRICS).recorder_.define(kind, to_string(name));
    };
    metrics_.record = [](const void* h, std::uint32_t metric, gantry_str label, double value) {
        auto& self = use(h, GANTRY_SERVICE_METRICS);
        if (!self.recorder_.record(metric, to_string(label), value))
            self.ops_.fault("record of a metric that was not defined");
    };

    offer(GANTRY_SERVICE_EVENTS, events_);
    events_.publish = [](const void* h, gantry_str topic, gantry_str key, gantry_str bytes) {
        use(h, GANTRY_SERVICE_EVENTS).recorder_.publish({to_string(topic), to_string(key), to_string(bytes)});
    };
    events_.subscribe = [](const void* h, gantry_str topic, gantry_event_fn fn, void* context) {
        auto& self = use(h, GANTRY_SERVICE_EVENTS);
        const std::lock_guard<std::mutex> lock(self.mutex_);
        self.subscribers_[++self.last_subscription_] = {to_string(topic), fn, context};
        return self.last_subscription_;
    };
    events_.unsubscribe = [](const void* h, std::uint64_t handle) {
        auto& self = use(h, GANTRY_SERVICE_EVENTS);
        if (!self.loop_.here()) self.ops_.fault("unsubscribe outside the lane");
        const std::lock_guard<std::mutex> lock(self.mutex_);
        self.subscribers_.erase(handle);
    };
    events_.emit = [](const void* h, gantry_str json) {
        use(h, GANTRY_SERVICE_EVENTS).recorder_.emit(to_string(json));
    };

    offer(GANTRY_SERVICE_TIMER, timer_);
    timer_.after = [](const void* h, std::uint64_t delay, gantry_task_fn fn, void* context) {
        return use(h, GANTRY_SERVICE_TIMER).loop_.after(std::chrono::nanoseconds(delay), [fn, context] {
            fn(context);
        });
    };
    timer_.cancel = [](const void* h, std::uint64_t timer) {
        return use(h, GANTRY_SERVICE_TIMER).loop_.cancel(timer) ? 1 : 0;
    };

    offer(GANTRY_SERVICE_FD, fd_);
    fd_.watch = [](const void* h, std::int32_t fd, std::uint32_t events, gantry_fd_fn fn, void* context) {
        return use(h, GANTRY_SERVICE_FD).loop_.watch(fd, events, [fn, context](int which, std::uint32_t ready) {
            fn(context, which, ready);
        });
    };
    fd_.unwatch = [](const void* h, std::uint64_t handle) {
        auto& self = use(h, GANTRY_SERVICE_FD);
        if (!self.loop_.here()) self.ops_.fault("unwatch outside the lane");
        self.loop_.unwatch(handle);
    };

    offer(GANTRY_SERVICE_EXECUTOR, executor_);
    executor_.submit = [](const void* h, gantry_task_fn fn, void* context) -> gantry_status {
        return use(h, GANTRY_SERVICE_EXECUTOR).workers_.submit([fn, context] { fn(context); }) ? GANTRY_OK
                                                                                               : GANTRY_BUSY;
    };
    executor_.post = [](const void* h, gantry_task_fn fn, void* context) {
        auto& self = use(h, GANTRY_SERVICE_EXECUTOR);
        self.loop_.post([&self, fn, context] {
            if (self.open_) fn(context);
        });
    };

    offer(GANTRY_SERVICE_CONFIG, config_);
    config_.instance = to_str(with_.instance);
    config_.node_name = to_str(with_.node_name);
    config_.node_instance = to_str(with_.node_instance);
    config_.state_dir = to_str(state_dir_);
    config_.run_dir = to_str(run_dir_);
    config_.json = to_str(with_.config);

    offer(GANTRY_SERVICE_STATE, state_);
    state_.put = [](const void* h, gantry_str key, gantry_str value, gantry_error_sink* error) -> gantry_status {
        auto& self = use(h, GANTRY_SERVICE_STATE);
        const auto name = to_string(key);
        if (folder::is_key(name) && value.n <= 65536 && self.folder_.put(name, to_string(value))) return GANTRY_OK;
        const std::string text =
            "state \"" + name + "\": the key must be [A-Za-z0-9._-]{1,128} and the value at most 64 KiB";
        const gantry_error e{sizeof(gantry_error), GANTRY_INVALID, 0, 0, 0, to_str(text), {nullptr, 0}};
        if (error != nullptr) error->set(error, &e);
        return GANTRY_INVALID;
    };
    state_.get = [](const void* h, gantry_str key, void (*fn)(void*, gantry_str), void* context) -> gantry_status {
        std::string value;
        const auto name = to_string(key);
        if (!folder::is_key(name)) return GANTRY_INVALID;
        if (!use(h, GANTRY_SERVICE_STATE).folder_.get(name, value)) return GANTRY_NOT_FOUND;
        fn(context, to_str(value));
        return GANTRY_OK;
    };
    state_.list = [](const void* h, void (*fn)(void*, gantry_str), void* context) {
        for (const auto& key : use(h, GANTRY_SERVICE_STATE).folder_.keys()) fn(context, to_str(key));
    };

    offer(GANTRY_SERVICE_EXEC, exec_);
    exec_.spawn = [](const void* h, const gantry_exec_request* request, gantry_exit_fn fn, void* context) {
        auto& self = use(h, GANTRY_SERVICE_EXEC);
        return self.helpers_.spawn(*request, [&self, fn, context](int status, bool timed_out) {
            self.loop_.post([&self, fn, context, status, timed_out] {
                if (self.open_) fn(context, status, timed_out ? 1 : 0);
            });
        });
    };
    exec_.kill = [](const void* h, std::int64_t pid) { use(h, GANTRY_SERVICE_EXEC).helpers_.kill(pid); };

    offer(GANTRY_SERVICE_PEER, peer_);
    peer_.call = [](const void* h, gantry_str capability, gantry_str op, const gantry_request* request, std::int64_t,
                    gantry_reply_fn fn, void* context, gantry_error_sink* error) {
        return use(h, GANTRY_SERVICE_PEER).call_peer(capability, op, *request, fn, context, error);
    };

    offer(GANTRY_SERVICE_TRACE, trace_);
    trace_.step = [](const void* h, gantry_op op, gantry_str name) {
        use(h, GANTRY_SERVICE_TRACE).ops_.step(op, name);
    };
}

} // namespace gantry::fake
