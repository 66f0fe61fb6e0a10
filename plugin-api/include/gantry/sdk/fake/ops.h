// The operations a test has started: their completion, items, progress, cancellation; and what the plugin did wrong.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "loop.h"
#include "message.h"

namespace gantry::fake {

struct progress {
    std::uint64_t done = 0;
    std::uint64_t total = 0;
    std::string what;
};

class ops {
public:
    using clock = std::chrono::steady_clock;
    explicit ops(loop& lane) : lane_(lane) {}

    // ---- for the test ----------------------------------------------------------------------------------------------
    /// Calls fn on the lane. timeout: until the op is cancelled for being late.
    gantry_op start(gantry_op_fn fn, void* self, const message& with, std::chrono::nanoseconds timeout) {
        gantry_op number = 0;
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            number = ++last_;
            auto& made = open_[number];
            if (timeout != std::chrono::nanoseconds::max()) made.deadline = clock::now() + timeout;
        }
        if (fn == nullptr) {
            finish(number, {{GANTRY_UNSUPPORTED, 0, false, 0, "the table has no such operation", ""}, "", {}});
            return number;
        }
        if (timeout != std::chrono::nanoseconds::max()) lane_.after(timeout, [this, number] { cancel(number); });
        const auto status = lane_.sync([&] {
            const gantry_request request{sizeof(gantry_request), static_cast<std::uint32_t>(with.fds.size()),
                                         with.fds.data(), to_str(with.key), to_str(with.bytes)};
            return fn(self, &request, number);
        });
        if (status != GANTRY_OK) refused(number, status);
        return number;
    }
    bool wait(gantry_op number, std::chrono::nanoseconds most) {
        std::unique_lock<std::mutex> lock(mutex_);
        return changed_.wait_for(lock, most, [&] { return open_.at(number).completed; });
    }
    bool completed(gantry_op number) {
        const std::lock_guard<std::mutex> lock(mutex_);
        return open_.at(number).completed;
    }
    outcome result(gantry_op number) {
        const std::lock_guard<std::mutex> lock(mutex_);
        return open_.at(number).end;
    }
    /// The next item of a stream; false when none comes in time.
    bool next_item(gantry_op number, outcome& out, std::chrono::nanoseconds most) {
        std::unique_lock<std::mutex> lock(mutex_);
        auto& op = open_.at(number);
        if (!changed_.wait_for(lock, most, [&] { return !op.items.empty(); })) return false;
        out = std::move(op.items.front());
        op.items.pop_front();
        changed_.notify_all();
        return true;
    }
    std::vector<progress> reports(gantry_op number) {
        const std::lock_guard<std::mutex> lock(mutex_);
        return open_.at(number).reports;
    }
    std::vector<std::string> steps(gantry_op number) {
        const std::lock_guard<std::mutex> lock(mutex_);
        return open_.at(number).steps;
    }
    void cancel(gantry_op number) {
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            open_.at(number).cancelled = true;
        }
        changed_.notify_all();
        lane_.post([this, number] { run_cancel(number); });
    }
    void cancel_all() {
        std::vector<gantry_op> all;
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            for (const auto& one : open_) {
                if (!one.second.completed) all.push_back(one.first);
            }
        }
        for (const auto one : all) cancel(one);
    }
    std::vector<gantry_op> unfinished() {
        const std::lock_guard<std::mutex> lock(mutex_);
        std::vector<gantry_op> out;
        for (const auto& one : open_) {
            if (!one.second.completed) out.push_back(one.first);
        }
        return out;
    }
    std::vector<std::string> misbehaviour() {
        const std::lock_guard<std::mutex> lock(mutex_);
        return faults_;
    }
    void fault(std::string what) {
        const std::lock_guard<std::mutex> lock(mutex_);
        faults_.push_back(std::move(what));
    }
    std::size_t most_items = 1024; ///< unread items of one op before item() blocks

    // ---- gantry.op/1 -----------------------------------------------------------------------------------------------
    void complete(gantry_op number, const gantry_reply& reply) {
        if (reply.error != nullptr && reply.error->message.n == 0) fault("an error without a message");
        finish(number, copy_reply(reply));
    }
    gantry_status item(gantry_op number, const gantry_reply& reply) {
        std::unique_lock<std::mutex> lock(mutex_);
        const auto found = open_.find(number);
        if (found == open_.end()) {
            faults_.push_back("item of an operation that does not exist: " + std::to_string(number));
            return GANTRY_CANCELLED;
        }
        auto& op = found->second;
        if (op.items.size() >= most_items && lane_.here()) faults_.push_back("item() blocks the lane");
        changed_.wait(lock, [&] { return op.cancelled || op.completed || op.items.size() < most_items; });
        if (op.completed) faults_.push_back("item after completion: op " + std::to_string(number));
        if (op.cancelled || op.completed) return GANTRY_CANCELLED;
        op.items.push_back(copy_reply(reply));
        changed_.notify_all();
        return GANTRY_OK;
    }
    void report(gantry_op number, const gantry_progress& report) {
        const std::lock_guard<std::mutex> lock(mutex_);
        const auto found = open_.find(number);
        if (found != open_.end()) found->second.reports.push_back({report.done, report.total, to_string(report.what)});
    }
    void step(gantry_op number, gantry_str name) {
        const std::lock_guard<std::mutex> lock(mutex_);
        const auto found = open_.find(number);
        if (found != open_.end()) found->second.steps.push_back(to_string(name));
    }
    std::int64_t deadline_ns(gantry_op number) {
        const std::lock_guard<std::mutex> lock(mutex_);
        const auto found = open_.find(number);
        if (found == open_.end()) return 0;
        if (found->second.deadline == clock::time_point::max()) return INT64_MAX;
        return std::chrono::nanoseconds(found->second.deadline.time_since_epoch()).count();
    }
    bool is_cancelled(gantry_op number) {
        const std::lock_guard<std::mutex> lock(mutex_);
        const auto found = open_.find(number);
        return found == open_.end() || found->second.cancelled || clock::now() >= found->second.deadline;
    }
    void on_cancel(gantry_op number, gantry_cancel_fn fn, void* context) {
        bool already = false;
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            const auto found = open_.find(number);
            if (found == open_.end() || found->second.completed) return;
            found->second.on_cancel = fn;
            found->second.context = context;
            already = found->second.cancelled;
        }
        if (already) lane_.post([this, number] { run_cancel(number); });
    }

private:
    struct record {
        clock::time_point deadline = clock::time_point::max();
        bool cancelled = false;
        bool cancel_runs = false;
        bool completed = false;
        gantry_cancel_fn on_cancel = nullptr;
        void* context = nullptr;
        outcome end;
        std::deque<outcome> items;
        std::vector<progress> reports;
        std::vector<std::string> steps;
    };

    void finish(gantry_op number, outcome end) {
        std::unique_lock<std::mutex> lock(mutex_);
        const auto found = open_.find(number);
        if (found == open_.end()) {
            faults_.push_back("completion of an operation that does not exist: " + std::to_string(number));
            return;
        }
        auto& op = found->second;
        if (op.completed) {
            faults_.push_back("second completion of op " + std::to_string(number));
            return;
        }
        op.completed = true;
        op.end = std::move(end);
        changed_.notify_all();
        if (!lane_.here()) changed_.wait(lock, [&] { return !op.cancel_runs; });
    }
    void refused(gantry_op number, gantry_status status) {
        if (completed(number)) fault("op " + std::to_string(number) + " was completed and then refused");
        finish(number, {{status, 0, false, 0, "refused with status " + std::to_string(status), ""}, "", {}});
    }
    void run_cancel(gantry_op number) {
        gantry_cancel_fn fn = nullptr;
        void* context = nullptr;
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            auto& op = open_.at(number);
            if (op.completed || op.on_cancel == nullptr) return;
            std::swap(fn, op.on_cancel);
            context = op.context;
            op.cancel_runs = true;
        }
        fn(context, number);
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            open_.at(number).cancel_runs = false;
        }
        changed_.notify_all();
    }

    loop& lane_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::map<gantry_op, record> open_;
    gantry_op last_ = 0;
    std::vector<std::string> faults_;
};

} // namespace gantry::fake
