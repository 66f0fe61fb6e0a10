// What a plugin says about its operations: completions, items, progress, steps, and what it asks.
#include <cstddef>

#include "core/host/abi_copy.hpp"
#include "core/host/op_number.hpp"
#include "core/host/op_router.hpp"

namespace gantry::core {

namespace {

constexpr auto progress_interval = std::chrono::milliseconds(100);

} // namespace

void op_router::stray(gantry_op op, const char* action) {
    std::unique_lock lock(mutex_);
    const auto index = slot_of(op);
    const bool ours = op != 0 && instance_of(op) == settings_.index && index < slots_.size();
    const bool issued = ours && generation_of(op) <= slots_[index].generation;
    lock.unlock();
    const auto text = std::string(settings_.instance) + ": " + action + " of operation " + std::to_string(op);
    if (issued) settings_.misbehaved("double_complete", text + ", which has completed already");
    else settings_.misbehaved("unknown_op", text + ", which was never issued");
}

void op_router::complete(gantry_op op, const gantry_reply* reply) {
    std::unique_lock lock(mutex_);
    auto* s = find(op);
    if (!s || s->at == phase::waiting || s->at == phase::posted || s->completing) {
        lock.unlock();
        return stray(op, "completion");
    }
    const auto name = who(*s);
    if (s->at == phase::abandoned) {
        --abandoned_;
        free_slot(op, *s);
        lock.unlock();
        return settings_.misbehaved("late_complete", name + " completed after it was abandoned");
    }
    s->completing = true;
    if (s->cancel_running && !lane_.on_lane()) // the cancel callback must not run after this returns
        cancel_ran_.wait_for(lock, settings_.grace, [&] { return !s->cancel_running; });
    lock.unlock();
    auto outcome = copy_reply(reply, name);
    const bool nameless = fails_without_message(reply);
    lock.lock();
    if (s->at == phase::abandoned) { // while its reply was copied
        --abandoned_;
        free_slot(op, *s);
        return;
    }
    if (!outcome && outcome.error().code == code::cancelled && s->stopped == stop_reason::timeout)
        outcome = stop_error(*s, ": " + outcome.error().message);
    auto d = conclude(op, *s, std::move(outcome));
    --abandoned_;
    free_slot(op, *s);
    lock.unlock();
    deliver(std::move(d));
    if (nameless) settings_.misbehaved("error_without_message", name + " failed without a message");
}

gantry_status op_router::item(gantry_op op, const gantry_reply* reply) {
    std::unique_lock lock(mutex_);
    const auto* s = find(op);
    if (!s || s->completing || (s->at != phase::open && s->at != phase::abandoned)) {
        lock.unlock();
        stray(op, "item");
        return GANTRY_CANCELLED;
    }
    if (s->at == phase::abandoned || s->stopped != stop_reason::none) return GANTRY_CANCELLED;
    const auto listener = s->submission.listener;
    const auto name = who(*s);
    lock.unlock();
    if (!listener->streams()) {
        settings_.misbehaved("item_of_unary_op", name + " sent an item, which nobody asked for");
        return GANTRY_CANCELLED;
    }
    auto copy = copy_reply(reply, name);
    if (!copy) {
        settings_.misbehaved("bad_item", name + ": " + copy.error().message);
        return GANTRY_INVALID;
    }
    return listener->item(*std::move(copy)) ? GANTRY_OK : GANTRY_CANCELLED;
}

void op_router::progress(gantry_op op, const gantry_progress* progress) {
    if (!progress || progress->struct_size < offsetof(gantry_progress, what) + sizeof(gantry_str)) return;
    op_progress copy{.done = progress->done, .total = progress->total, .what = std::string(view(progress->what))};
    std::unique_lock lock(mutex_);
    auto* s = find(op);
    if (!s || s->at != phase::open || s->completing) return; // late progress is harmless
    const auto listener = s->submission.listener;
    const auto uid = s->submission.pod_uid;
    const auto now = clock::now();
    const bool for_people = !uid.empty() && now - s->progressed >= progress_interval;
    if (for_people) s->progressed = now;
    lock.unlock();
    if (for_people)
        journal_.progressed(uid, op, copy.what + " " + std::to_string(copy.done) + (copy.total ? "/" + std::to_string(copy.total) : ""));
    listener->progress(std::move(copy));
}

std::int64_t op_router::deadline_ns(gantry_op op) const {
    const std::lock_guard lock(mutex_);
    const auto* s = find(op);
    if (!s) return 0;
    return s->deadline == clock::time_point::max() ? INT64_MAX : s->deadline.time_since_epoch().count();
}

bool op_router::is_cancelled(gantry_op op) const {
    const std::lock_guard lock(mutex_);
    const auto* s = find(op);
    return !s || s->stopped != stop_reason::none || s->at != phase::open;
}

void op_router::on_cancel(gantry_op op, gantry_cancel_fn fn, void* context) {
    std::unique_lock lock(mutex_);
    auto* s = find(op);
    if (!s || s->at != phase::open || s->completing) return;
    if (s->cancel_running && !lane_.on_lane()) {
        cancel_ran_.wait_for(lock, settings_.grace, [&] { return !s->cancel_running; });
        if (!(s = find(op)) || s->at != phase::open) return;
    }
    s->cancel_fn = fn;
    s->cancel_context = context;
    if (fn && s->stopped != stop_reason::none) queue_cancel(op, *s);
}

void op_router::step(gantry_op op, std::string_view name) {
    std::unique_lock lock(mutex_);
    const auto* s = find(op);
    if (!s || s->submission.pod_uid.empty()) return;
    const auto uid = s->submission.pod_uid;
    const auto at = clock::now() - s->submitted;
    lock.unlock();
    journal_.traced(uid, op, {.name = std::string(name), .at = at});
}

op_router::pod_of_op op_router::pod_of(gantry_op op) const {
    const std::lock_guard lock(mutex_);
    const auto* s = find(op);
    return s ? pod_of_op{s->submission.pod, s->submission.pod_uid, s->stats->name} : pod_of_op{};
}

} // namespace gantry::core
