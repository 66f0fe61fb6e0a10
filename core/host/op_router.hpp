// Routes the operations of one instance: gives each a generation-checked number, runs those of one key one after another and
// no more at once than the plugin can take, watches their deadlines, and sees to it that each completes exactly once.
//
// An op waits, is posted to the lane, is open from the call of its function to its completion, and may be abandoned: the
// caller has its answer, the plugin still owes one. Ops without a deadline (watches, exec streams) do not count
// against maxConcurrency, or a few of them would stop the pods.
#pragma once

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/unique_fd.hpp"
#include "core/host/alarm_clock.hpp"
#include "core/host/call.hpp"
#include "core/host/journal.hpp"
#include "core/host/lane.hpp"
#include "core/host/metrics.hpp"
#include "gantry/abi/op.h"

namespace gantry::core {

/// Whoever waits for an op. Called from any thread, without locks held; completed() comes exactly once and last.
class op_listener {
public:
    virtual ~op_listener() = default;
    virtual bool streams() const { return false; }
    /// One element of a stream. Blocks while the listener's queue is full; false once nobody listens.
    virtual bool item(op_reply) { return false; }
    virtual void progress(op_progress) {}
    /// The op is being cancelled: item() must not block any more.
    virtual void deafen() {}
    virtual void completed(result<op_reply> outcome) = 0;
};

struct op_submission {
    op_ref op{};
    std::string bytes{};
    std::vector<base::unique_fd> fds{};
    std::string key{};
    std::chrono::nanoseconds timeout = std::chrono::nanoseconds::max(); ///< max: no deadline
    std::string pod{}, pod_uid{};
    std::string caller{}; ///< instance that calls a peer; empty for the core
    std::shared_ptr<op_listener> listener{};
};

struct op_totals {
    std::uint64_t done = 0, failed = 0, open = 0, abandoned = 0;
};

class op_router {
public:
    using clock = std::chrono::steady_clock;

    struct settings {
        const char* instance = nullptr; ///< interned
        std::uint32_t index = 0;        ///< of the instance on this node, below 4096: part of every op number
        int max_concurrency = 64;
        std::chrono::milliseconds grace{2000};
        std::function<void(const char* kind, const std::string& what)> misbehaved{}; ///< any thread, no locks held
        std::function<void(const char* what)> after_call{};                          ///< on the lane, after each plugin call
    };

    op_router(settings settings, lane& lane, alarm_clock& alarms, op_journal& journal);

    /// Ops are refused as unavailable, with this reason, until open() is called. [any]
    void close(std::string reason);
    /// `self` and the capability tables of the instance, by id.
    void open(void* self, std::map<std::string, const void*, std::less<>> tables);

    /// Never blocks; the outcome goes to the listener, possibly before this returns. The result is the op's number, 0 when
    /// it was refused. [any]
    gantry_op submit(op_submission submission);
    /// The caller gives up. [any]
    void cancel(gantry_op op);
    /// Answers everyone: waiting ops fail as unavailable with `reason`, open ones are abandoned with code::timeout. [any]
    void fail_all(const std::string& reason);
    /// Cancels the ops that would never end by themselves: those without a deadline. [any]
    void cancel_endless();
    /// True once no op is open, waiting for it at most until the deadline. [any but the lane]
    bool wait_idle(clock::time_point deadline);

    // The plugin's side, gantry.op/1 and gantry.trace/1. [any]
    void complete(gantry_op op, const gantry_reply* reply);
    gantry_status item(gantry_op op, const gantry_reply* reply);
    void progress(gantry_op op, const gantry_progress* progress);
    std::int64_t deadline_ns(gantry_op op) const;
    bool is_cancelled(gantry_op op) const;
    void on_cancel(gantry_op op, gantry_cancel_fn fn, void* context);
    void step(gantry_op op, std::string_view name);

    struct pod_of_op {
        std::string pod{}, pod_uid{}, op{};
    };
    pod_of_op pod_of(gantry_op op) const;

    op_totals totals() const;
    /// One sample for each op, of the four families of ops (metrics.cpp of the host writes their heads).
    struct op_metrics {
        std::string capability{}, name{};
        const char* label = nullptr; ///< name, interned
        std::array<std::uint64_t, 12> by_code{};
        latency_histogram seconds{};
        std::uint64_t open = 0;
    };
    std::vector<op_metrics> metrics() const;

private:
    enum class phase { free, waiting, posted, open, abandoned };
    enum class stop_reason { none, timeout, cancelled };

    struct slot {
        std::uint32_t generation = 1;
        phase at = phase::free;
        op_submission submission{};
        op_metrics* stats = nullptr;
        clock::time_point submitted{}, deadline = clock::time_point::max(), progressed{};
        std::uint64_t alarm = 0;
        bool counted = false, holds_key = false, completing = false;
        stop_reason stopped = stop_reason::none;
        gantry_cancel_fn cancel_fn = nullptr;
        void* cancel_context = nullptr;
        bool cancel_queued = false, cancel_running = false;
    };
    struct key_queue {
        std::deque<gantry_op> waiting;
    };
    /// What is left to do after the lock is released.
    struct delivery {
        std::shared_ptr<op_listener> listener{};
        result<op_reply> outcome = error{};
        std::string pod_uid{};
        gantry_op op = 0;
        std::chrono::nanoseconds duration{};
    };

    gantry_op number_of(std::uint32_t index) const;
    slot* find(gantry_op op);
    const slot* find(gantry_op op) const;
    std::string who(const slot& s) const;
    error stop_error(const slot& s, std::string_view tail) const;

    void schedule(gantry_op op, slot& s);
    void post(gantry_op op, slot& s);
    void pump();
    void run(gantry_op op);
    void stop(gantry_op op, stop_reason reason);
    void queue_cancel(gantry_op op, slot& s);
    void run_cancel(gantry_op op);
    void abandon(gantry_op op);
    delivery conclude(gantry_op op, slot& s, result<op_reply> outcome);
    void free_slot(gantry_op op, slot& s);
    void give_back(slot& s);
    void deliver(delivery d);
    void stray(gantry_op op, const char* action);
    op_metrics* stats_of(const op_ref& op);

    const settings settings_;
    lane& lane_;
    alarm_clock& alarms_;
    op_journal& journal_;

    mutable std::mutex mutex_;
    std::condition_variable cancel_ran_, idle_;
    bool gate_open_ = false;
    void* self_ = nullptr;
    std::string gate_reason_;
    std::map<std::string, const void*, std::less<>> tables_;
    std::deque<slot> slots_;
    std::vector<std::uint32_t> free_;
    std::unordered_map<std::string, key_queue> keys_; ///< one entry for each key in use
    std::deque<gantry_op> ready_;                     ///< wait for a free place only
    int counted_ = 0;                                 ///< posted and open ops that count against max_concurrency
    std::size_t waiting_ = 0, open_ = 0, abandoned_ = 0;
    op_totals totals_;
    std::map<std::pair<std::string, std::string>, std::unique_ptr<op_metrics>> stats_;
};

} // namespace gantry::core
