#include "core/host/journal.hpp"

#include <algorithm>

namespace gantry::core {

namespace {

constexpr std::size_t most_pods = 1024;
constexpr std::size_t most_finished = 64;
constexpr std::size_t most_trace_steps = 32;

} // namespace

void op_journal::opened(const std::string& pod_uid, op_step step) {
    const std::lock_guard lock(mutex_);
    auto found = pods_.find(pod_uid);
    if (found == pods_.end()) {
        if (pods_.size() == most_pods) {
            pods_.erase(by_age_.front());
            by_age_.pop_front();
        }
        found = pods_.emplace(pod_uid, pod_steps{}).first;
        found->second.age = by_age_.insert(by_age_.end(), pod_uid);
    }
    by_age_.splice(by_age_.end(), by_age_, found->second.age);
    found->second.steps.push_back(std::move(step));
}

op_step* op_journal::find(const std::string& pod_uid, std::uint64_t id) {
    const auto pod = pods_.find(pod_uid);
    if (pod == pods_.end()) return nullptr;
    auto& steps = pod->second.steps;
    const auto found = std::find_if(steps.rbegin(), steps.rend(), [&](const op_step& step) { return step.id == id && step.open; });
    return found == steps.rend() ? nullptr : &*found;
}

void op_journal::traced(const std::string& pod_uid, std::uint64_t id, trace_step step) {
    const std::lock_guard lock(mutex_);
    auto* found = find(pod_uid, id);
    if (found && found->steps.size() < most_trace_steps) found->steps.push_back(std::move(step));
}

void op_journal::progressed(const std::string& pod_uid, std::uint64_t id, std::string progress) {
    const std::lock_guard lock(mutex_);
    if (auto* found = find(pod_uid, id)) found->progress = std::move(progress);
}

void op_journal::closed(const std::string& pod_uid, std::uint64_t id, std::chrono::nanoseconds duration, gantry::code code,
                        std::string message) {
    const std::lock_guard lock(mutex_);
    auto* found = find(pod_uid, id);
    if (!found) return;
    found->open = false;
    found->duration = duration;
    found->code = code;
    found->message = std::move(message);
    auto& steps = pods_.find(pod_uid)->second.steps;
    const auto finished = std::count_if(steps.begin(), steps.end(), [](const op_step& step) { return !step.open; });
    if (finished <= static_cast<std::ptrdiff_t>(most_finished)) return;
    steps.erase(std::find_if(steps.begin(), steps.end(), [](const op_step& step) { return !step.open; }));
}

void op_journal::forget(const std::string& pod_uid) {
    const std::lock_guard lock(mutex_);
    const auto pod = pods_.find(pod_uid);
    if (pod == pods_.end()) return;
    by_age_.erase(pod->second.age);
    pods_.erase(pod);
}

std::vector<op_step> op_journal::steps(const std::string& pod_uid) const {
    const std::lock_guard lock(mutex_);
    const auto pod = pods_.find(pod_uid);
    if (pod == pods_.end()) return {};
    std::vector<op_step> out(pod->second.steps.begin(), pod->second.steps.end());
    const auto now = std::chrono::system_clock::now();
    for (auto& step : out)
        if (step.open) step.duration = now - step.started;
    return out;
}

} // namespace gantry::core
