#include "core/kernel/pod_worker.hpp"

#include <algorithm>

#include "base/files.hpp"
#include "core/kernel/pod_files.hpp"
#include "core/kernel/spawn.hpp"
#include "core/log/log.hpp"
#include "core/pod/names.hpp"
#include "core/pod/phase.hpp"

namespace gantry::core {

namespace asio = boost::asio;
using namespace std::chrono_literals;

pod_worker::pod_worker(worker_context& context, std::string uid)
    : context_(context), uid_(std::move(uid)), wake_(context.executor) {}

void pod_worker::adopt(std::shared_ptr<runtime_slot> slot, runtime_view view) {
    slot_ = std::move(slot);
    view_ = std::move(view);
    // What runs was admitted once.
    admitted_ = true;
    if (record_.start_time == wall_time{} && !view_.sandboxes.empty())
        record_.start_time = view_.sandboxes.back().created_at;
}

void pod_worker::load(pod_record record) {
    record_ = std::move(record);
    admitted_ = admitted_ || record_.admitted;
    if (record_.final_status) stage_ = stage::terminated;
}

void pod_worker::update(std::shared_ptr<const model::pod> pod) {
    pod_ = std::move(pod);
    not_before_.clear();
    error_delay_ = {};
    const auto& meta = pod_->metadata;
    if (!meta.deletion_timestamp.empty() && (stage_ == stage::sync || stage_ == stage::terminating)) {
        begin_ending();
        // A grace period only ever gets shorter.
        const auto deadline = steady::now() + grace();
        if (stop_deadline_ && deadline < *stop_deadline_) {
            stop_deadline_ = deadline;
            step_stop_.emit(asio::cancellation_type::terminal);
        }
    }
    wake();
}

void pod_worker::remove() {
    if (removed_) return;
    removed_ = true;
    if (stage_ == stage::sync) begin_ending();
    wake();
}

void pod_worker::stop() {
    stopping_ = true;
    step_stop_.emit(asio::cancellation_type::terminal);
    wake();
}

void pod_worker::report(const runtime_event& event) {
    if (event.sandbox) view_.merge(*event.sandbox);
    for (const auto& c : event.containers) view_.merge(c);
    if (event.deleted) {
        view_.erase(event.id);
        view_.erase_sandbox(event.id);
    }
    // A runtime that only names what changed has to be asked.
    if (!event.sandbox && event.containers.empty() && !event.deleted) uncertain_ = true;
    wake();
}

void pod_worker::observed(const runtime_view& view) {
    for (const auto& s : view.sandboxes) view_.merge(s);
    for (const auto& c : view.containers) view_.merge(c);
    wake();
}

void pod_worker::vanished(const std::vector<std::string>& ids) {
    for (const auto& id : ids) {
        view_.erase(id);
        view_.erase_sandbox(id);
    }
    wake();
}

asio::awaitable<void> pod_worker::run() {
    while (!stopping_ && stage_ != stage::finished) {
        next_ = steady::time_point::max();
        due_ = {};
        const auto before = stage_;
        co_await run_cancellable(pass(), step_stop_);
        retry_at_ = due_;
        if (stopping_ || stage_ == stage::finished) break;
        if (stage_ == before) co_await wake_.wait_until(next_);
    }
    if (stage_ == stage::finished) context_.finished(uid_);
}

asio::awaitable<void> pod_worker::pass() {
    switch (stage_) {
    case stage::sync: co_await sync(); break;
    case stage::terminating: co_await terminate(); break;
    case stage::terminated:
        if (removed_) co_await forget();
        else if (!context_.statuses.find(uid_) && record_.final_status)
            context_.statuses.publish(pod_, *record_.final_status);
        break;
    case stage::finished: break;
    }
}

asio::awaitable<void> pod_worker::sync() {
    const auto now = std::chrono::system_clock::now();
    if (record_.start_time == wall_time{}) record_.start_time = now;
    if (!slot_) {
        const auto& handler = pod_->spec.runtime_class_name;
        slot_ = context_.runtime_for(handler);
        if (!slot_) {
            const auto why = "no runtime is bound for RuntimeClass \"" + handler + "\" (bind.runtime.handlers)";
            for (const auto& c : pod_->spec.containers) waiting_[c.name] = {"CreatePodSandboxError", why};
            if (waiting_for_ != why) say(true, "FailedCreatePodSandBox", "Failed to create pod sandbox: " + why);
            waiting(why);
            publish();
            co_return;
        }
    }
    if (!admitted_) {
        if (const auto no = context_.admit(*pod_)) {
            if (no->later) {
                waiting("room on the node: " + no->message);
                publish();
                co_return;
            }
            say(true, no->reason.c_str(), no->message);
            auto status = rejected_status(*pod_, no->reason, no->message, record_.start_time);
            record_.final_status = std::make_shared<const model::pod_status>(status);
            context_.statuses.publish(pod_, std::move(status));
            stage_ = stage::terminated;
            waiting({});
            save();
            co_return;
        }
        admitted_ = true;
    }
    if (pass_deadline()) co_return;
    if (!slot_->ready) {
        waiting("runtime " + std::string(slot_->runtime->instance()) + (slot_->error.empty() ? "" : ": " + slot_->error));
        publish();
        co_return;
    }
    if (uncertain_) {
        if (!co_await refresh()) co_return;
    }
    co_await converge();
}

/// True when the pod was active for longer than it may be.
bool pod_worker::pass_deadline() {
    if (!pod_->spec.active_deadline_seconds) return false;
    const auto end = record_.start_time + std::chrono::seconds(*pod_->spec.active_deadline_seconds);
    const auto left = end - std::chrono::system_clock::now();
    if (left > 0s) {
        next_ = std::min(next_, steady::now() + left);
        return false;
    }
    forced_reason_ = "DeadlineExceeded";
    forced_message_ = "Pod was active on the node longer than the specified deadline";
    say(false, forced_reason_.c_str(), forced_message_);
    begin_ending();
    return true;
}

void pod_worker::begin_ending() {
    if (stage_ != stage::sync) return;
    stage_ = stage::terminating;
    initialized_ = true;
    if (pod_ && !pod_->spec.init_containers.empty()) {
        initialized_ = false;
        if (const auto last = context_.statuses.find(uid_))
            for (const auto& c : last->status->conditions)
                initialized_ = initialized_ || (c.type == "Initialized" && c.status == "True");
    }
    error_delay_ = {};
    waiting("its containers to end");
    step_stop_.emit(asio::cancellation_type::terminal);
}

asio::awaitable<void> pod_worker::forget() {
    const auto self = ref();
    waiting("its sandbox to be removed");
    if (slot_)
        while (!view_.sandboxes.empty()) {
            const auto id = view_.sandboxes.back().id;
            if (auto removed = co_await remove_sandbox(*slot_->runtime, self, id); !removed) {
                retry_after_error(removed.error(), "remove its sandbox");
                co_return;
            }
            view_.erase_sandbox(id);
        }
    if (auto gone = co_await remove_cgroup(); !gone) {
        retry_after_error(gone.error(), "remove its cgroup");
        co_return;
    }
    model::object_meta meta;
    meta.uid = uid_;
    meta.namespace_ = pod_ ? pod_->metadata.namespace_ : record_.namespace_;
    meta.name = pod_ ? pod_->metadata.name : record_.name;
    result<void> cleaned;
    std::function<void()> clean = [&] {
        cleaned = base::remove_tree(pod_dir(context_.options.state_dir, uid_));
        if (cleaned && !meta.name.empty()) cleaned = base::remove_tree(context_.options.log_dir + "/" + pod_log_dir(meta));
    };
    co_await context_.files.run(std::move(clean));
    if (!cleaned) {
        retry_after_error(cleaned.error(), "remove its directories");
        co_return;
    }
    context_.statuses.erase(uid_);
    stage_ = stage::finished;
}

void pod_worker::publish() {
    if (!pod_) return;
    const auto last = context_.statuses.find(uid_);
    status_input in{.pod = *pod_, .view = view_, .waiting = waiting_};
    in.before = last ? last->status.get() : nullptr;
    in.stage = status_stage();
    in.initialized = initialized_;
    in.now = std::chrono::system_clock::now();
    in.start_time = record_.start_time;
    in.host_ip = context_.options.host_ip;
    if (slot_) in.runtime_name = slot_->name;
    if (!forced_reason_.empty()) {
        in.reason = forced_reason_;
        in.message = forced_message_;
        // Failed is not said while something may still run.
        if (in.stage == pod_stage::ended) in.phase = "Failed";
    }
    context_.statuses.publish(pod_, make_status(in));
}

pod_stage pod_worker::status_stage() const {
    switch (stage_) {
    case stage::sync: return pod_stage::running;
    case stage::terminating: return view_.any_running() ? pod_stage::ending : pod_stage::ended;
    default: return pod_stage::ended;
    }
}

void pod_worker::say(bool warning, const char* reason, std::string message, std::string field_path) {
    kube_event event;
    event.warning = warning;
    event.reason = reason;
    event.message = std::move(message);
    event.uid = uid_;
    event.namespace_ = pod_ ? pod_->metadata.namespace_ : record_.namespace_;
    event.pod = pod_ ? pod_->metadata.name : record_.name;
    event.field_path = std::move(field_path);
    context_.events.record(std::move(event), std::chrono::system_clock::now());
}

void pod_worker::save() {
    if (!pod_) return;
    record_.namespace_ = pod_->metadata.namespace_;
    record_.name = pod_->metadata.name;
    record_.admitted = admitted_;
    context_.files.post([dir = pod_dir(context_.options.state_dir, uid_), text = encode(record_), uid = uid_] {
        auto written = base::make_dirs(dir, 0755);
        if (written) written = base::write_file_atomic(dir + "/pod.json", text);
        if (!written) log::warn("a pod's record was not written", {{"uid", uid}, {"error", written.error().message}});
    });
}

pod_ref pod_worker::ref() const {
    return {uid_, pod_ ? pod_key(pod_->metadata) : record_.namespace_ + "/" + record_.name};
}

void pod_worker::retry_in(steady::duration delay, std::string why) {
    waiting(std::move(why));
    next_ = std::min(next_, steady::now() + delay);
    const auto due = std::chrono::system_clock::now() + std::chrono::duration_cast<wall_time::duration>(delay);
    due_ = due_ == wall_time{} ? due : std::min(due_, due);
    retry_at_ = due_;
}

void pod_worker::retry_at(wall_time when, std::string why) {
    retry_in(std::max<steady::duration>(when - std::chrono::system_clock::now(), 0s), std::move(why));
}

void pod_worker::retry_after_error(const error& e, std::string why) {
    constexpr steady::duration first = 500ms, most = 10s;
    if (e.code == code::timeout || e.code == code::cancelled || e.code == code::unavailable || e.code == code::internal)
        uncertain_ = true;
    error_delay_ = error_delay_ == steady::duration{} ? first : std::min<steady::duration>(error_delay_ * 2, most);
    log::warn("a pod's step failed", {{"pod", ref().key}, {"uid", uid_}, {"step", why}, {"error", e.message}});
    retry_in(error_delay_, why + ": " + e.message);
}

std::string pod_worker::log_path(const container_view& c) const {
    if (!c.log_path.empty()) return c.log_path;
    if (!pod_) return {};
    return context_.options.log_dir + "/" + pod_log_dir(pod_->metadata) + "/" + c.name + "/" + std::to_string(c.attempt) +
           ".log";
}

} // namespace gantry::core
