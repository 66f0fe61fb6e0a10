#include "core/kernel/runtime_feed.hpp"

#include <algorithm>
#include <chrono>
#include <set>

#include "core/kernel/spawn.hpp"
#include "core/log/log.hpp"

namespace gantry::core {

namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace {

constexpr std::chrono::steady_clock::duration first_pause = 100ms, longest_pause = 5s, poll_period = 1s;

} // namespace

runtime_feed::runtime_feed(asio::any_io_executor executor, std::shared_ptr<runtime_slot> slot, hooks h)
    : executor_(std::move(executor)), slot_(std::move(slot)), hooks_(std::move(h)) {}

asio::awaitable<void> runtime_feed::follow(std::shared_ptr<signal> ended) {
    auto outcome = co_await watch_events(*slot_->runtime, hooks_.event);
    slot_->error = outcome ? "its event stream ended" : outcome.error().message;
    no_events_ = !outcome && outcome.error().code == code::unsupported;
    ended->notify();
}

asio::awaitable<void> runtime_feed::run() {
    auto pause = first_pause;
    while (!co_await is_cancelled()) {
        auto ended = std::make_shared<signal>(executor_);
        task_group stream(executor_);
        // The stream is open before the listing, so that no change falls between the two.
        if (!no_events_) stream.add(follow(ended));
        if (slot_->name.empty()) {
            auto name = co_await runtime_name(*slot_->runtime);
            slot_->name = name && !name->empty() ? *name : std::string(slot_->runtime->instance());
        }
        if (co_await list()) {
            pause = first_pause;
            if (no_events_)
                co_await ended->wait_until(std::chrono::steady_clock::now() + poll_period);
            else
                co_await ended->wait();
        }
        stream.cancel();
        const bool go_on = co_await stream.join();
        if (!go_on) co_return;
        if (co_await is_cancelled()) co_return;
        if (no_events_ && slot_->ready) continue;
        slot_->ready = false;
        log::warn("the runtime cannot be followed", {{"plugin", slot_->runtime->instance()}, {"error", slot_->error}});
        signal timer(executor_);
        co_await timer.wait_until(std::chrono::steady_clock::now() + pause);
        pause = std::min(pause * 2, longest_pause);
    }
}

asio::awaitable<bool> runtime_feed::list() {
    found_pods found;
    std::vector<std::string> vanished;
    auto done = co_await collect(found, vanished);
    if (!done) {
        slot_->error = done.error().message;
        co_return false;
    }
    slot_->ready = true;
    slot_->error.clear();
    hooks_.listed(std::move(found), std::move(vanished));
    co_return true;
}

asio::awaitable<result<void>> runtime_feed::collect(found_pods& found, std::vector<std::string>& vanished) {
    const pod_ref everyone;
    std::map<std::string, container_view> containers_before;
    std::map<std::string, sandbox_view> sandboxes_before;
    for (const auto& [uid, view] : hooks_.known()) {
        for (const auto& c : view->containers) containers_before.emplace(c.id, c);
        for (const auto& s : view->sandboxes) sandboxes_before.emplace(s.id, s);
    }
    auto sandboxes = co_await list_sandboxes(*slot_->runtime, everyone);
    if (!sandboxes) co_return std::move(sandboxes).error();
    auto containers = co_await list_containers(*slot_->runtime, everyone);
    if (!containers) co_return std::move(containers).error();

    std::set<std::string> listed;
    for (const auto& s : *sandboxes) {
        if (s.uid.empty()) continue;
        listed.insert(s.id);
        auto& pod = found[s.uid];
        pod.namespace_ = s.namespace_;
        pod.name = s.name;
        if (const auto it = sandboxes_before.find(s.id); it != sandboxes_before.end() && it->second.ready == s.ready) {
            pod.view.merge(it->second);
            continue;
        }
        const pod_ref tag{s.uid, s.namespace_ + "/" + s.name};
        auto status = co_await sandbox_status(*slot_->runtime, tag, s.id);
        if (status)
            pod.view.merge(*std::move(status));
        else if (status.error().code != code::not_found)
            co_return std::move(status).error();
    }
    for (const auto& c : *containers) {
        if (c.uid.empty()) continue;
        listed.insert(c.id);
        auto& pod = found[c.uid];
        if (const auto it = containers_before.find(c.id); it != containers_before.end() && it->second.phase == c.phase) {
            pod.view.merge(it->second);
            continue;
        }
        const pod_ref tag{c.uid, pod.namespace_ + "/" + pod.name};
        auto status = co_await container_status(*slot_->runtime, tag, c.id);
        if (!status) {
            if (status.error().code == code::not_found) continue;
            co_return std::move(status).error();
        }
        status->sandbox_id = c.sandbox_id;
        pod.view.merge(*std::move(status));
    }
    for (const auto& [id, c] : containers_before)
        if (!listed.contains(id)) vanished.push_back(id);
    for (const auto& [id, s] : sandboxes_before)
        if (!listed.contains(id)) vanished.push_back(id);
    co_return result<void>();
}

} // namespace gantry::core
