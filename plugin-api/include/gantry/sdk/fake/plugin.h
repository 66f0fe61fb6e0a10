// One instance of the plugin under test, led through its life as gantry would, on the lane of the fake host.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "../fake_host.h"

namespace gantry::fake {

class plugin {
public:
    using nanoseconds = std::chrono::nanoseconds;
    static constexpr nanoseconds patience = std::chrono::seconds(10);

    /// Creates the index-th plugin of the library; see created().
    plugin(host& h, const gantry_plugin_entry* entry, std::uint32_t index = 0) : host_(h) {
        created_ = step([&](gantry_error_sink* sink) -> gantry_status {
            table_ = entry->create(index, host_.abi(), sink);
            return table_ != nullptr ? GANTRY_OK : GANTRY_INTERNAL;
        });
    }
    ~plugin() {
        if (table_ == nullptr) return;
        if (initialised_) stop();
        host_.lane().sync([&] { table_->destroy(table_->self); });
    }
    plugin(const plugin&) = delete;
    plugin& operator=(const plugin&) = delete;

    const outcome& created() const { return created_; }
    const gantry_plugin* abi() const { return table_; }

    /// init and activate.
    outcome start() {
        if (!created_.ok()) return created_;
        const auto ready = init();
        return ready.ok() ? activate() : ready;
    }
    outcome init() {
        host_.set_open(true);
        host_.set_initialising(true);
        const auto end = step([&](gantry_error_sink* sink) { return table_->init(table_->self, sink); });
        host_.set_initialising(false);
        initialised_ = end.ok();
        if (!initialised_) host_.set_open(false);
        return end;
    }
    outcome activate() {
        if (!GANTRY_HAS(table_, activate)) return {};
        return step([&](gantry_error_sink* sink) { return table_->activate(table_->self, sink); });
    }
    void drain(nanoseconds most) {
        if (!GANTRY_HAS(table_, drain)) return;
        const auto until = std::chrono::steady_clock::now() + most;
        host_.lane().sync([&] { table_->drain(table_->self, nanoseconds(until.time_since_epoch()).count()); });
    }
    /// Cancels what is open, as gantry does after draining, and stops.
    void stop() {
        if (!initialised_) return;
        initialised_ = false;
        host_.operations().cancel_all();
        host_.lane().sync([&] {
            if (GANTRY_HAS(table_, stop)) table_->stop(table_->self);
            host_.set_open(false);
        });
    }
    outcome config_check(const std::string& json) {
        return step([&](gantry_error_sink* sink) { return table_->config_check(table_->self, to_str(json), sink); });
    }
    outcome config_apply(const std::string& json) {
        return step([&](gantry_error_sink* sink) { return table_->config_apply(table_->self, to_str(json), sink); });
    }

    /// The table for a capability id, or NULL.
    template <class Table>
    const Table* capability(const std::string& id) {
        return static_cast<const Table*>(
            host_.lane().sync([&] { return table_->capability(table_->self, to_str(id)); }));
    }

    // ---- operations ------------------------------------------------------------------------------------------------
    gantry_op begin(gantry_op_fn fn, const message& with = {}, nanoseconds timeout = nanoseconds::max()) {
        return host_.operations().start(fn, table_->self, with, timeout);
    }
    /// The end of an operation; error GANTRY_TIMEOUT "not completed" if it owes that for too long.
    outcome wait(gantry_op op, nanoseconds most = patience) {
        if (host_.operations().wait(op, most)) return host_.operations().result(op);
        return {{GANTRY_TIMEOUT, 0, false, 0, "not completed", ""}, "", {}};
    }
    outcome call(gantry_op_fn fn, const message& with = {}, nanoseconds timeout = nanoseconds::max()) {
        return wait(begin(fn, with, timeout));
    }
    bool next_item(gantry_op op, outcome& item, nanoseconds most = patience) {
        return host_.operations().next_item(op, item, most);
    }
    void cancel(gantry_op op) { host_.operations().cancel(op); }

private:
    /// Runs a step on the lane. A failure without an error, and an error with success, are breaches.
    template <class F>
    outcome step(F f) {
        error_sink sink;
        const auto status = host_.lane().sync([&] { return f(&sink.abi); });
        outcome end;
        if (status != GANTRY_OK) {
            end.error = sink.error;
            if (sink.calls != 1 || sink.error.message.empty())
                host_.operations().fault("a step failed without exactly one error message");
            if (end.error.code == GANTRY_OK) end.error.code = status;
        } else if (sink.calls != 0) {
            host_.operations().fault("a step set an error and succeeded");
        }
        return end;
    }

    host& host_;
    const gantry_plugin* table_ = nullptr;
    outcome created_;
    bool initialised_ = false;
};

} // namespace gantry::fake
