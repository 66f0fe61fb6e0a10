// The worker's way from running containers to nothing.
#include <algorithm>

#include "core/kernel/pod_files.hpp"
#include "core/kernel/pod_worker.hpp"
#include "core/kernel/spawn.hpp"
#include "core/pod/phase.hpp"
#include "core/pod/restart.hpp"
#include "core/pod/termination.hpp"
#include "gantry/abi/draft/resources.h"

namespace gantry::core {

namespace asio = boost::asio;
using namespace std::chrono_literals;

std::chrono::seconds pod_worker::grace() const {
    // The kubelet never gives less, so that a process can at least see the signal.
    constexpr auto least = 2s;
    if (!pod_) return least;
    const auto& meta = pod_->metadata;
    const auto spec = pod_->spec.termination_grace_period_seconds.value_or(30);
    return std::max(least, std::chrono::seconds(meta.deletion_grace_period_seconds.value_or(spec)));
}

std::string pod_worker::field_path(const std::string& container) const {
    if (pod_)
        for (const auto& c : pod_->spec.init_containers)
            if (c.name == container) return "spec.initContainers{" + container + "}";
    return "spec.containers{" + container + "}";
}

/// Asks the runtime for everything of this pod, after all calls that change it.
asio::awaitable<bool> pod_worker::refresh() {
    const auto self = ref();
    auto sandboxes = co_await list_sandboxes(*slot_->runtime, self);
    if (!sandboxes) {
        retry_after_error(sandboxes.error(), "list its sandboxes");
        co_return false;
    }
    auto containers = co_await list_containers(*slot_->runtime, self);
    if (!containers) {
        retry_after_error(containers.error(), "list its containers");
        co_return false;
    }
    runtime_view fresh;
    for (const auto& s : *sandboxes) {
        auto status = co_await sandbox_status(*slot_->runtime, self, s.id);
        if (status) fresh.merge(*std::move(status));
    }
    for (const auto& c : *containers) {
        auto status = co_await container_status(*slot_->runtime, self, c.id);
        if (!status) continue;
        status->sandbox_id = c.sandbox_id;
        fresh.merge(*std::move(status));
    }
    if (co_await is_cancelled()) co_return false;
    view_ = std::move(fresh);
    uncertain_ = false;
    co_return true;
}

asio::awaitable<bool> pod_worker::refresh_container(const std::string& id, const std::string& sandbox_id) {
    const auto self = ref();
    auto status = co_await container_status(*slot_->runtime, self, id);
    if (!status) {
        if (status.error().code == code::not_found)
            view_.erase(id);
        else
            uncertain_ = true;
        co_return false;
    }
    status->sandbox_id = sandbox_id;
    view_.merge(*std::move(status));
    co_return true;
}

asio::awaitable<void> pod_worker::stop_container_task(std::string id, std::string name, std::string message,
                                                      steady::time_point deadline) {
    const auto self = ref();
    say(false, "Killing", std::move(message), field_path(name));
    const auto left = std::chrono::ceil<std::chrono::seconds>(deadline - steady::now());
    auto stopped = co_await stop_container(*slot_->runtime, self, id, std::max<std::chrono::seconds>(left, 0s));
    if (!stopped) {
        if (stopped.error().code != code::cancelled) stop_error_ = stopped.error();
        co_return;
    }
    const auto* now = view_.find(id);
    if (now != nullptr && now->phase == container_phase::running) co_await refresh_container(id, now->sandbox_id);
}

/// Ends every container, sidecars last and in reverse order, then every sandbox.
asio::awaitable<bool> pod_worker::stop_all() {
    if (!stop_deadline_) stop_deadline_ = steady::now() + grace();
    stop_error_.reset();
    std::vector<container_view> sidecars;
    {
        task_group together(context_.executor);
        for (const auto& c : view_.containers) {
            if (c.phase != container_phase::running && c.phase != container_phase::unknown) continue;
            const bool sidecar =
                pod_ && std::any_of(pod_->spec.init_containers.begin(), pod_->spec.init_containers.end(),
                                    [&](const model::container& i) { return i.name == c.name && is_sidecar(i); });
            if (sidecar)
                sidecars.push_back(c);
            else
                together.add(stop_container_task(c.id, c.name, "Stopping container " + c.name, *stop_deadline_));
        }
        if (!co_await together.join()) co_return false;
    }
    if (co_await is_cancelled()) co_return false;
    const auto order = [&](const container_view& c) {
        const auto& init = pod_->spec.init_containers;
        return std::find_if(init.begin(), init.end(), [&](const auto& i) { return i.name == c.name; }) - init.begin();
    };
    std::sort(sidecars.begin(), sidecars.end(), [&](auto& a, auto& b) { return order(a) > order(b); });
    for (const auto& c : sidecars) {
        co_await stop_container_task(c.id, c.name, "Stopping container " + c.name, std::max(*stop_deadline_, steady::now() + 2s));
        if (co_await is_cancelled()) co_return false;
    }
    if (stop_error_) {
        say(true, "FailedKillPod", "error killing pod: " + stop_error_->message);
        retry_after_error(*stop_error_, "stop its containers");
        co_return false;
    }

    const auto self = ref();
    for (std::size_t i = 0; i < view_.sandboxes.size(); ++i) {
        if (!view_.sandboxes[i].ready) continue;
        const auto id = view_.sandboxes[i].id;
        auto stopped = co_await stop_sandbox(*slot_->runtime, self, id);
        if (!stopped) {
            if (co_await is_cancelled()) co_return false;
            say(true, "FailedKillPod", "error killing pod: " + stopped.error().message);
            retry_after_error(stopped.error(), "stop its sandbox");
            co_return false;
        }
        if (i < view_.sandboxes.size() && view_.sandboxes[i].id == id) view_.sandboxes[i].ready = false;
    }
    // Stopping a sandbox ends what was left in it.
    std::vector<std::pair<std::string, std::string>> left;
    for (const auto& c : view_.containers)
        if (c.phase == container_phase::running) left.emplace_back(c.id, c.sandbox_id);
    for (const auto& [id, sandbox_id] : left) co_await refresh_container(id, sandbox_id);
    if (uncertain_) {
        retry_in(500ms, "the exit of its containers");
        co_return false;
    }
    co_return true;
}

/// Adds to each container that ended what its program left as last words.
asio::awaitable<void> pod_worker::read_messages() {
    if (!pod_) co_return;
    struct message {
        std::string id;
        std::string path;
        std::string log;
        std::size_t limit;
        std::string text;
    };
    std::vector<message> found;
    for (const auto* list : {&pod_->spec.init_containers, &pod_->spec.containers})
        for (const auto& c : *list)
            for (const auto& v : view_.containers) {
                if (v.name != c.name || v.phase != container_phase::exited || !messages_read_.insert(v.id).second) continue;
                const bool from_log = c.termination_message_policy == "FallbackToLogsOnError" && v.exit_code != 0;
                found.push_back({v.id, termination_path(context_.options.state_dir, uid_, c.name, v.attempt),
                                 from_log ? log_path(v) : std::string(), message_limit(pod_->spec), {}});
            }
    if (found.empty()) co_return;
    std::function<void()> read = [&found] {
        constexpr std::size_t log_bytes = 16 * termination_log_limit; // records are longer than their text
        for (auto& m : found) {
            m.text = read_tail(m.path, m.limit);
            if (m.text.empty() && !m.log.empty()) m.text = log_tail(read_tail(m.log, log_bytes));
        }
    };
    co_await context_.files.run(std::move(read));
    for (const auto& m : found)
        for (auto& v : view_.containers)
            if (v.id == m.id) v.message = joined_message(v.message, m.text);
    std::erase_if(messages_read_, [&](const std::string& id) { return view_.find(id) == nullptr; });
}

asio::awaitable<result<void>> pod_worker::remove_cgroup() {
    if (context_.resources == nullptr) co_return result<void>();
    op_request request;
    request.bytes = "{\"uid\":\"" + uid_ + "\"}";
    request.key = uid_;
    call_options options;
    options.pod = ref().key;
    options.pod_uid = uid_;
    auto gone = co_await context_.resources->call(GANTRY_OP(GANTRY_RESOURCES, gantry_resources, remove_pod),
                                                  std::move(request), std::move(options));
    if (!gone) co_return std::move(gone).error();
    in_cgroup_ = false;
    co_return result<void>();
}

asio::awaitable<void> pod_worker::terminate() {
    if (!slot_) slot_ = pod_ ? context_.runtime_for(pod_->spec.runtime_class_name) : nullptr;
    if (slot_) {
        if (!slot_->ready) {
            waiting("runtime " + std::string(slot_->runtime->instance()) +
                    (slot_->error.empty() ? "" : ": " + slot_->error));
            co_return;
        }
        waiting("its containers to end");
        publish();
        if (uncertain_) {
            if (!co_await refresh()) co_return;
        }
        if (!co_await stop_all()) co_return;
        if (uncertain_) co_return retry_in(0s, "what the runtime has of it");
    }
    co_await read_messages();
    publish();
    if (!removed_) {
        if (auto gone = co_await remove_cgroup(); !gone) co_return retry_after_error(gone.error(), "remove its cgroup");
        if (const auto last = context_.statuses.find(uid_)) record_.final_status = last->status;
        save();
        waiting({});
    }
    stage_ = stage::terminated;
}

} // namespace gantry::core
