#include "core/host/op_router.hpp"

#include <algorithm>
#include <cstring>
#include <optional>

#include "core/host/abi_copy.hpp"
#include "core/host/catching.hpp"
#include "core/host/current_call.hpp"
#include "core/host/op_number.hpp"

namespace gantry::core {

namespace {

constexpr std::size_t most_waiting = 16384;

std::string seconds(std::chrono::nanoseconds time) {
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(time).count();
    return ms % 1000 == 0 ? std::to_string(ms / 1000) + " s" : std::to_string(ms) + " ms";
}

error unavailable(std::string message) { return {.code = code::unavailable, .message = std::move(message), .retryable = true}; }

/// The function at `offset` of a capability's table, null when the table ends before it or has none there.
gantry_op_fn function_at(const void* table, std::size_t offset) {
    std::uint32_t size = 0;
    std::memcpy(&size, table, sizeof size);
    if (offset + sizeof(gantry_op_fn) > size) return nullptr;
    gantry_op_fn fn = nullptr;
    std::memcpy(&fn, static_cast<const char*>(table) + offset, sizeof fn);
    return fn;
}

} // namespace

op_router::op_router(settings settings, lane& lane, alarm_clock& alarms, op_journal& journal)
    : settings_(std::move(settings)), lane_(lane), alarms_(alarms), journal_(journal),
      gate_reason_(std::string(settings_.instance) + " is not started") {}

void op_router::close(std::string reason) {
    const std::lock_guard lock(mutex_);
    gate_open_ = false;
    gate_reason_ = std::move(reason);
}

void op_router::open(void* self, std::map<std::string, const void*, std::less<>> tables) {
    const std::lock_guard lock(mutex_);
    for (std::uint32_t i = 0; i < slots_.size(); ++i) // what an earlier life of the instance still owed
        if (slots_[i].at == phase::abandoned && !slots_[i].completing) {
            --abandoned_;
            free_slot(number_of(i), slots_[i]);
        }
    self_ = self;
    gate_open_ = true;
    tables_ = std::move(tables);
}

// ---- numbers and names

gantry_op op_router::number_of(std::uint32_t index) const {
    return make_op_number(slots_[index].generation, settings_.index, index);
}

op_router::slot* op_router::find(gantry_op op) {
    return const_cast<slot*>(static_cast<const op_router*>(this)->find(op));
}

const op_router::slot* op_router::find(gantry_op op) const {
    const auto index = slot_of(op);
    if (op == 0 || instance_of(op) != settings_.index || index >= slots_.size()) return nullptr;
    const auto& s = slots_[index];
    return s.generation == generation_of(op) && s.at != phase::free ? &s : nullptr;
}

std::string op_router::who(const slot& s) const {
    return std::string(settings_.instance) + ": " + s.stats->name;
}

error op_router::stop_error(const slot& s, std::string_view tail) const {
    if (s.stopped == stop_reason::timeout)
        return {.code = code::timeout,
                .message = who(s) + " did not finish within " + seconds(s.submission.timeout) + std::string(tail),
                .retryable = true};
    return {.code = code::cancelled, .message = who(s) + " was cancelled" + std::string(tail)};
}

op_router::op_metrics* op_router::stats_of(const op_ref& op) {
    auto& stats = stats_[{std::string(op.capability), std::string(op.name)}];
    if (!stats) {
        stats = std::make_unique<op_metrics>();
        stats->capability = op.capability;
        stats->name = op.name;
        stats->label = interned(stats->name.c_str());
    }
    return stats.get();
}

// ---- the caller's side

gantry_op op_router::submit(op_submission submission) {
    const auto refuse = [&](error e) {
        submission.listener->completed(std::move(e));
        return gantry_op{0};
    };
    std::unique_lock lock(mutex_);
    const auto name = std::string(settings_.instance) + ": " + std::string(submission.op.name);
    std::optional<error> refusal;
    const auto table = tables_.find(submission.op.capability);
    if (!gate_open_) {
        refusal = unavailable(gate_reason_);
    } else if (table == tables_.end() || !function_at(table->second, submission.op.offset)) {
        refusal = error{.code = code::unsupported, .message = name + " is not offered by this plugin (" +
                                                              std::string(submission.op.capability) + ")"};
    } else if (abandoned_ >= static_cast<std::size_t>(settings_.max_concurrency)) {
        refusal = unavailable(name + " refused: " + std::to_string(abandoned_) +
                              " operations of this plugin were abandoned and have not come back");
    } else if (waiting_ >= most_waiting || (free_.empty() && slots_.size() >= most_slots)) {
        refusal = error{.code = code::busy, .message = name + " refused: " + std::to_string(waiting_) + " operations wait already",
                        .retryable = true};
    }
    if (refusal) {
        lock.unlock();
        return refuse(*std::move(refusal));
    }
    if (free_.empty()) {
        slots_.emplace_back();
        free_.push_back(static_cast<std::uint32_t>(slots_.size() - 1));
    }
    const auto index = free_.back();
    free_.pop_back();
    auto& s = slots_[index];
    const auto op = number_of(index);
    s.submission = std::move(submission);
    s.stats = stats_of(s.submission.op);
    s.submission.op.capability = s.stats->capability; // the submitter's own text may be gone once this returns
    s.submission.op.name = s.stats->name;
    s.submitted = clock::now();
    ++s.stats->open;
    if (!s.submission.pod_uid.empty())
        journal_.opened(s.submission.pod_uid, {.id = op,
                                               .plugin = settings_.instance,
                                               .capability = s.stats->capability,
                                               .op = s.stats->name,
                                               .caller = s.submission.caller,
                                               .started = std::chrono::system_clock::now()});
    const auto room = clock::time_point::max() - s.submitted;
    if (s.submission.timeout < room) {
        s.counted = true;
        s.deadline = s.submitted + s.submission.timeout;
        s.alarm = alarms_.set(s.deadline, [this, op] { stop(op, stop_reason::timeout); });
    }
    schedule(op, s);
    return op;
}

void op_router::cancel(gantry_op op) { stop(op, stop_reason::cancelled); }

void op_router::stop(gantry_op op, stop_reason reason) {
    std::unique_lock lock(mutex_);
    auto* s = find(op);
    if (!s || s->stopped != stop_reason::none || s->at == phase::abandoned) return;
    s->stopped = reason;
    if (s->at == phase::waiting || s->at == phase::posted) { // the plugin has not seen it
        auto d = conclude(op, *s, stop_error(*s, s->at == phase::waiting ? ": it waited for its turn" : ": the plugin's lane is busy"));
        lock.unlock();
        return deliver(std::move(d));
    }
    alarms_.cancel(s->alarm);
    s->alarm = alarms_.set(clock::now() + settings_.grace, [this, op] { abandon(op); });
    if (s->cancel_fn) queue_cancel(op, *s);
    const auto listener = s->submission.listener;
    lock.unlock();
    listener->deafen();
}

void op_router::abandon(gantry_op op) {
    std::unique_lock lock(mutex_);
    auto* s = find(op);
    if (!s || s->at != phase::open || s->completing) return;
    auto d = conclude(op, *s, stop_error(*s, " and ignored its cancellation for " + seconds(settings_.grace) + ": it was abandoned"));
    const auto what = who(*s) + " did not complete within " + seconds(settings_.grace) + " of its cancellation";
    lock.unlock();
    settings_.misbehaved("abandoned_op", what);
    deliver(std::move(d));
}

void op_router::fail_all(const std::string& reason) {
    std::vector<delivery> deliveries;
    {
        const std::lock_guard lock(mutex_);
        for (std::uint32_t i = 0; i < slots_.size(); ++i) {
            auto& s = slots_[i];
            const auto op = number_of(i);
            if (s.at == phase::waiting || s.at == phase::posted) {
                deliveries.push_back(conclude(op, s, unavailable(who(s) + " was not started: " + reason)));
            } else if (s.at == phase::open) {
                s.stopped = stop_reason::cancelled;
                deliveries.push_back(conclude(op, s, error{.code = code::timeout, .message = who(s) + " was given up: " + reason, .retryable = true}));
            }
        }
    }
    for (auto& d : deliveries) {
        d.listener->deafen();
        deliver(std::move(d));
    }
}

void op_router::cancel_endless() {
    std::vector<gantry_op> endless;
    {
        const std::lock_guard lock(mutex_);
        for (std::uint32_t i = 0; i < slots_.size(); ++i)
            if (slots_[i].at != phase::free && !slots_[i].counted) endless.push_back(number_of(i));
    }
    for (const auto op : endless) stop(op, stop_reason::cancelled);
}

bool op_router::wait_idle(clock::time_point deadline) {
    std::unique_lock lock(mutex_);
    return idle_.wait_until(lock, deadline, [this] { return open_ == 0 && waiting_ == 0; });
}

// ---- scheduling; all with the lock held

void op_router::schedule(gantry_op op, slot& s) {
    s.at = phase::waiting;
    ++waiting_;
    if (!s.submission.key.empty()) {
        const auto [queue, first] = keys_.try_emplace(s.submission.key);
        if (!first) return queue->second.waiting.push_back(op);
        s.holds_key = true;
    }
    if (s.counted && counted_ >= settings_.max_concurrency) return ready_.push_back(op);
    post(op, s);
}

void op_router::post(gantry_op op, slot& s) {
    s.at = phase::posted;
    --waiting_;
    ++open_;
    if (s.counted) ++counted_;
    lane_.post([this, op] { run(op); });
}

void op_router::pump() {
    while (!ready_.empty() && counted_ < settings_.max_concurrency) {
        const auto op = ready_.front();
        ready_.pop_front();
        if (auto* s = find(op); s && s->at == phase::waiting) post(op, *s);
    }
}

/// Ends what an op holds against others: its place and its key.
void op_router::give_back(slot& s) {
    if (s.at == phase::waiting) {
        --waiting_;
    } else {
        --open_;
        if (s.counted) --counted_;
    }
    if (s.holds_key) {
        s.holds_key = false;
        const auto queue = keys_.find(s.submission.key);
        bool passed_on = false;
        while (!passed_on && !queue->second.waiting.empty()) {
            const auto next = queue->second.waiting.front();
            queue->second.waiting.pop_front();
            auto* heir = find(next);
            if (!heir || heir->at != phase::waiting) continue;
            heir->holds_key = passed_on = true;
            if (heir->counted && counted_ >= settings_.max_concurrency) ready_.push_back(next);
            else post(next, *heir);
        }
        if (!passed_on) keys_.erase(queue);
    }
    pump();
    if (open_ == 0 && waiting_ == 0) idle_.notify_all();
}

op_router::delivery op_router::conclude(gantry_op op, slot& s, result<op_reply> outcome) {
    alarms_.cancel(s.alarm);
    s.alarm = 0;
    delivery d{.listener = std::move(s.submission.listener),
               .outcome = std::move(outcome),
               .pod_uid = s.submission.pod_uid,
               .op = op,
               .duration = clock::now() - s.submitted};
    const auto code = d.outcome ? code::ok : d.outcome.error().code;
    ++s.stats->by_code[std::min<std::size_t>(static_cast<std::size_t>(code), s.stats->by_code.size() - 1)];
    s.stats->seconds.observe(std::chrono::duration<double>(d.duration).count());
    --s.stats->open;
    ++totals_.done;
    if (!d.outcome) ++totals_.failed;
    const bool seen_by_plugin = s.at == phase::open && !s.completing;
    give_back(s);
    if (seen_by_plugin) {
        s.at = phase::abandoned;
        ++abandoned_;
        ++totals_.abandoned;
    } else if (!s.completing) {
        free_slot(op, s);
    } else {
        s.at = phase::abandoned; // complete() runs for it and frees it
        ++abandoned_;
    }
    return d;
}

void op_router::free_slot(gantry_op op, slot& s) {
    const auto generation = s.generation + 1;
    s = slot{};
    s.generation = std::max<std::uint32_t>(generation, 1);
    free_.push_back(slot_of(op));
}

void op_router::deliver(delivery d) {
    if (!d.pod_uid.empty()) {
        if (d.outcome) journal_.closed(d.pod_uid, d.op, d.duration, code::ok, {});
        else journal_.closed(d.pod_uid, d.op, d.duration, d.outcome.error().code, d.outcome.error().message);
    }
    d.listener->completed(std::move(d.outcome));
}

// ---- on the lane

void op_router::run(gantry_op op) {
    std::unique_lock lock(mutex_);
    auto* s = find(op);
    if (!s || s->at != phase::posted) return; // stopped while it was queued
    s->at = phase::open;
    // The plugin may complete the op on another thread before its function returns: what it borrows must outlast the slot.
    const auto bytes = std::move(s->submission.bytes);
    const auto fds = std::move(s->submission.fds);
    const auto key = s->submission.key;
    const auto table = tables_.find(s->submission.op.capability);
    const auto fn = table == tables_.end() ? nullptr : function_at(table->second, s->submission.op.offset);
    const char* const name = s->stats->label;
    void* const self = self_;
    lock.unlock();

    gantry_status status = GANTRY_UNAVAILABLE;
    std::optional<std::string> thrown;
    if (fn) {
        std::vector<std::int32_t> numbers;
        for (const auto& fd : fds) numbers.push_back(fd.get());
        const gantry_request request{.struct_size = sizeof(gantry_request),
                                     .fd_count = static_cast<std::uint32_t>(numbers.size()),
                                     .fds = numbers.data(),
                                     .key = borrow(key),
                                     .bytes = borrow(bytes)};
        const call_scope scope(settings_.instance, name, op);
        lane_.set_label(name);
        thrown = catching([&] { status = fn(self, &request, op); });
    }
    settings_.after_call(name);
    if (status == GANTRY_OK && !thrown) return;
    if (thrown) {
        status = GANTRY_INTERNAL;
        settings_.misbehaved("exception", std::string(settings_.instance) + ": an exception left " + name + ": " + *thrown);
    }

    lock.lock();
    s = find(op);
    if (!s || s->at != phase::open || s->completing) {
        lock.unlock();
        if (thrown) return;
        return settings_.misbehaved("completed_refused_op", std::string(settings_.instance) + ": " + name +
                                                                " was refused by its return value and completed as well");
    }
    const auto code = code_of(status);
    s->completing = true; // the plugin owes nothing for it
    auto d = conclude(op, *s, error{.code = code,
                                    .message = who(*s) + (thrown ? " threw: " + *thrown : " was not accepted (" + std::string(to_string(code)) + ")"),
                                    .retryable = code == code::busy || code == code::unavailable});
    --abandoned_;
    free_slot(op, *s);
    lock.unlock();
    deliver(std::move(d));
}

void op_router::queue_cancel(gantry_op op, slot& s) {
    if (std::exchange(s.cancel_queued, true)) return;
    lane_.post([this, op] { run_cancel(op); });
}

void op_router::run_cancel(gantry_op op) {
    std::unique_lock lock(mutex_);
    auto* s = find(op);
    if (!s || s->at != phase::open || s->completing || !s->cancel_fn) return;
    s->cancel_queued = false;
    s->cancel_running = true;
    const auto fn = std::exchange(s->cancel_fn, nullptr);
    void* const context = s->cancel_context;
    lock.unlock();
    std::optional<std::string> thrown;
    {
        const call_scope scope(settings_.instance, "cancel", op);
        lane_.set_label("cancel");
        thrown = catching([&] { fn(context, op); });
    }
    if (thrown) settings_.misbehaved("exception", std::string(settings_.instance) + ": an exception left a cancel callback: " + *thrown);
    settings_.after_call("cancel");
    lock.lock();
    if ((s = find(op))) s->cancel_running = false;
    cancel_ran_.notify_all();
}

op_totals op_router::totals() const {
    const std::lock_guard lock(mutex_);
    auto totals = totals_;
    totals.open = open_ + waiting_;
    return totals;
}

std::vector<op_router::op_metrics> op_router::metrics() const {
    const std::lock_guard lock(mutex_);
    std::vector<op_metrics> all;
    for (const auto& [name, stats] : stats_) all.push_back(*stats);
    return all;
}

} // namespace gantry::core
