// What pod supervisors report, and what becomes of a pod whose supervisor died.
#include <sys/epoll.h>

#include <csignal>

#include "plugins/cri-native/runtime/clock.hpp"
#include "plugins/cri-native/runtime/describe.hpp"
#include "plugins/cri-native/runtime/engine.hpp"

namespace gantry::cri_native {

namespace {

constexpr std::size_t event_queue_limit = 1024;

std::string reason_of(const launch::container_info& info) {
    if (info.oom_killed) return "OOMKilled";
    return info.exit_code == 0 ? "Completed" : "Error";
}

} // namespace

launch::client::events engine::events_for(const sandbox_ptr& pod) {
    // Both may end in the client's destruction, so they run when it has returned.
    const std::weak_ptr<sandbox> weak = pod;
    return {.exited =
                [this, weak](const launch::container_info& info) {
                    host_.post([this, weak, info] {
                        if (const auto pod = weak.lock()) on_exit(pod, info);
                    });
                },
            .lost =
                [this, weak](const error& why) {
                    host_.post([this, weak, why] {
                        if (const auto pod = weak.lock()) on_lost(pod, why);
                    });
                }};
}

result<void> engine::watch(const sandbox_ptr& pod) {
    const std::weak_ptr<sandbox> weak = pod;
    GANTRY_TRY(pod->readable, host_.watch_fd(pod->supervisor->fd(), EPOLLIN, [weak](std::int32_t, std::uint32_t) {
        if (const auto pod = weak.lock(); pod && pod->supervisor) pod->supervisor->on_readable();
    }));
    return {};
}

void engine::on_exit(const sandbox_ptr& pod, const launch::container_info& info) {
    const auto found = pod->containers.find(info.id);
    if (found != pod->containers.end()) mark_exited(found->second, info);
}

void engine::mark_exited(const container_ptr& one, const launch::container_info& info) {
    if (one->state == phase::exited) return;
    one->state = phase::exited;
    one->pid = 0;
    one->exit_code = info.exit_code;
    one->started_ns = info.started_ns;
    one->finished_ns = info.finished_ns;
    one->reason = reason_of(info);
    publish(*one, cri::CONTAINER_STOPPED_EVENT);
    one->exited.notify(host_);
    // Without a PID namespace of its own, what the first process started goes on; a container ends as a whole.
    if (!one->own_pid_namespace) host_.launch(kill_rest(one));
}

sdk::task<void> engine::kill_rest(container_ptr one) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    const auto killed = co_await host_.work([&] { return cgroups_->kill_all(one->cgroup, deadline); });
    if (!killed) host_.warn(killed.error().message, {{"container", one->record.id()}});
}

void engine::mark_ended(const container_ptr& one, int exit_code, std::string reason, std::string message) {
    const bool reported = one->state == phase::exited;
    one->state = phase::exited;
    one->pid = 0;
    one->exit_code = exit_code;
    if (!reported) one->finished_ns = unix_now();
    one->reason = std::move(reason);
    one->message = std::move(message);
    auto* ending = one->record.mutable_ending();
    ending->set_started_ns(one->started_ns);
    ending->set_finished_ns(one->finished_ns);
    ending->set_exit_code(exit_code);
    ending->set_reason(one->reason);
    ending->set_message(one->message);
    if (const auto kept = records_.put(one->record); !kept) host_.warn(kept.error().message);
    if (reported) return;
    publish(*one, cri::CONTAINER_STOPPED_EVENT);
    one->exited.notify(host_);
}

void engine::on_lost(const sandbox_ptr& pod, const error& why) {
    if (!pod->supervisor) return;
    host_.warn("the supervisor of a pod is gone; its containers are ended",
               {{"sandbox", pod->record.id()}, {"why", why.message}});
    pod->readable.end();
    pod->supervisor.reset();
    pod->lost = true;
    publish(*pod, cri::CONTAINER_STOPPED_EVENT);
    host_.launch(clean_up_lost(pod));
}

sdk::task<void> engine::clean_up_lost(sandbox_ptr pod) {
    const auto lock = co_await pod->changing.lock(host_);
    if (!pod->removed) co_await settle_lost(pod);
}

sdk::task<void> engine::settle_lost(sandbox_ptr pod) {
    std::vector<launch::container_info> nothing;
    std::string reason = "SupervisorLost";
    co_await settle(pod, std::move(nothing), std::move(reason));
}

/// Ends every container of a pod that has no supervisor, or that its supervisor does not speak for.
sdk::task<void> engine::settle(sandbox_ptr pod, std::vector<launch::container_info> known, std::string unknown_reason) {
    std::vector<container_ptr> open;
    for (const auto& [id, one] : pod->containers)
        if (one->state != phase::exited) open.push_back(one);
    const std::string run_dir = records_.supervisor_dir(pod->record.id());
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    auto ended = co_await host_.work([&]() -> result<std::vector<launch::container_info>> {
        for (const auto& one : open) {
            if (const auto killed = cgroups_->kill_all(one->cgroup, deadline); !killed)
                host_.warn(killed.error().message);
            if (const auto empty = cgroups_->wait_empty(one->cgroup, deadline); !empty)
                host_.warn(empty.error().message);
        }
        return launch::read_exit_records(run_dir);
    });
    if (ended)
        known.insert(known.end(), ended->begin(), ended->end());
    else
        host_.warn(ended.error().message, {{"sandbox", pod->record.id()}});
    for (const auto& one : open) {
        for (const auto& info : known)
            if (info.id == one->record.id() && info.state == launch::container_state::exited) mark_exited(one, info);
        if (one->state != phase::exited) mark_ended(one, 255, unknown_reason, "the container's end was not seen");
    }
}

void engine::publish(const container& one, cri::ContainerEventType type) {
    if (event_readers_.empty()) return;
    cri::ContainerEventResponse event;
    event.set_container_id(one.record.id());
    if (const auto pod = one.pod.lock()) *event.mutable_pod_sandbox_status() = status_of(*pod);
    *event.add_containers_statuses() = status_of(one);
    send_event(std::move(event), type);
}

void engine::publish(const sandbox& pod, cri::ContainerEventType type) {
    if (event_readers_.empty()) return;
    cri::ContainerEventResponse event;
    event.set_container_id(pod.record.id());
    *event.mutable_pod_sandbox_status() = status_of(pod);
    for (const auto& [id, one] : pod.containers) *event.add_containers_statuses() = status_of(*one);
    send_event(std::move(event), type);
}

void engine::send_event(cri::ContainerEventResponse event, cri::ContainerEventType type) {
    event.set_container_event_type(type);
    event.set_created_at(unix_now());
    const std::string bytes = event.SerializeAsString();
    for (const auto& reader : event_readers_) {
        // Events are hints: a reader that is this far behind has to list anyway.
        if (reader->queue.size() == event_queue_limit) reader->queue.pop_front();
        reader->queue.push_back(bytes);
        reader->more->notify(host_);
    }
}

op_task<void> engine::container_events(sdk::op op) {
    const auto reader = std::make_shared<event_reader>();
    event_readers_.insert(reader);
    op.on_cancel([this, reader] {
        reader->ended = true;
        reader->more->notify(host_);
    });
    while (!reader->ended) {
        if (reader->queue.empty()) {
            reader->more = std::make_unique<lane_event>();
            const auto woken = co_await reader->more->wait(host_);
            if (!woken) break;
            continue;
        }
        std::string item = std::move(reader->queue.front());
        reader->queue.pop_front();
        const auto sent = co_await host_.send(op, std::move(item));
        if (!sent) break;
    }
    event_readers_.erase(reader);
    co_return op.cancelled_error();
}

} // namespace gantry::cri_native
