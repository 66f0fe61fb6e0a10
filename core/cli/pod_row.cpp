#include "core/cli/pod_row.hpp"

#include "core/cli/json_path.hpp"
#include "core/cli/table.hpp"

namespace gantry::core::cli {

namespace {

std::string ended_word(const base::json::value& terminated) {
    if (auto reason = text_at(terminated, "reason"); !reason.empty()) return reason;
    if (const auto signal = number_at(terminated, "signal"); signal != 0) return "Signal:" + std::to_string(signal);
    return "ExitCode:" + std::to_string(number_at(terminated, "exitCode"));
}

/// "Init:..." while init containers hold the pod back, else empty.
std::string init_word(const base::json::value& pod) {
    const auto& statuses = array_at(pod, "status.initContainerStatuses");
    const auto total = array_at(pod, "spec.initContainers").size();
    for (std::size_t i = 0; i < statuses.size(); ++i) {
        const auto* terminated = find(statuses[i], "state.terminated");
        if (terminated && number_at(*terminated, "exitCode") == 0) continue;
        if (text_at(statuses[i], "started") == "true" && find(statuses[i], "state.running")) continue;
        if (terminated) return "Init:" + ended_word(*terminated);
        const auto reason = text_at(statuses[i], "state.waiting.reason");
        if (!reason.empty() && reason != "PodInitializing") return "Init:" + reason;
        return "Init:" + std::to_string(i) + "/" + std::to_string(total);
    }
    return {};
}

} // namespace

std::string pod_status_word(const base::json::value& pod) {
    if (!text_at(pod, "metadata.deletionTimestamp").empty()) return "Terminating";
    if (auto word = init_word(pod); !word.empty()) return word;
    std::string word = text_at(pod, "status.reason");
    if (word.empty()) word = text_at(pod, "status.phase", "Pending");
    bool running = false;
    const auto& statuses = array_at(pod, "status.containerStatuses");
    for (auto it = statuses.rbegin(); it != statuses.rend(); ++it) {
        if (auto reason = text_at(*it, "state.waiting.reason"); !reason.empty()) word = reason;
        else if (const auto* terminated = find(*it, "state.terminated")) word = ended_word(*terminated);
        else if (find(*it, "state.running")) running = true;
    }
    if (word == "Completed" && running) word = "Running";
    return word;
}

std::vector<std::string> pod_row(const base::json::value& pod, std::chrono::system_clock::time_point now) {
    std::int64_t restarts = 0;
    std::size_t ready = 0;
    for (const auto& status : array_at(pod, "status.containerStatuses")) {
        restarts += number_at(status, "restartCount");
        if (text_at(status, "ready") == "true") ++ready;
    }
    for (const auto& status : array_at(pod, "status.initContainerStatuses")) restarts += number_at(status, "restartCount");
    auto started = text_at(pod, "status.startTime");
    if (started.empty()) started = text_at(pod, "metadata.creationTimestamp");
    return {text_at(pod, "metadata.namespace"),
            text_at(pod, "metadata.name"),
            std::to_string(ready) + "/" + std::to_string(array_at(pod, "spec.containers").size()),
            pod_status_word(pod),
            std::to_string(restarts),
            age_of(started, now),
            text_at(pod, "status.podIP", "<none>")};
}

} // namespace gantry::core::cli
