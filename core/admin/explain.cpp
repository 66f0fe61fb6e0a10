#include "core/admin/explain.hpp"

#include <cstdio>

#include "base/time.hpp"

namespace gantry::core::admin {

namespace {

std::string took(std::chrono::nanoseconds duration) {
    const double ms = static_cast<double>(duration.count()) / 1e6;
    char text[32];
    std::snprintf(text, sizeof text, ms < 10 ? "%.2fms" : ms < 10'000 ? "%.0fms" : "%.0fs", ms < 10'000 ? ms : ms / 1000);
    return text;
}

std::string outcome(const op_step& step) {
    if (step.open) return step.progress.empty() ? "running" : "running: " + step.progress;
    if (step.code == code::ok) return "ok";
    return std::string(to_string(step.code)) + ": " + step.message;
}

std::string clock_time(wall_time time) { return base::format_rfc3339(time, 3).substr(11, 12); }

} // namespace

base::json::object event_object(const kube_event& event) {
    base::json::object about{{"kind", "Pod"}, {"namespace", event.namespace_}, {"name", event.pod}, {"uid", event.uid}};
    if (!event.field_path.empty()) about["fieldPath"] = event.field_path;
    return {{"kind", "Event"},
            {"apiVersion", "v1"},
            {"type", event.warning ? "Warning" : "Normal"},
            {"reason", event.reason},
            {"message", event.message},
            {"count", event.count},
            {"firstTimestamp", base::format_rfc3339(event.first_seen)},
            {"lastTimestamp", base::format_rfc3339(event.last_seen)},
            {"involvedObject", std::move(about)}};
}

base::json::object explain_answer(const pod_explanation& pod, const std::vector<op_step>& steps, wall_time now) {
    std::string summary = pod.summary.namespace_ + "/" + pod.summary.name + ": " + pod.summary.status;
    if (!pod.waiting_for.empty()) summary += ", waiting for " + pod.waiting_for;
    base::json::object answer{{"summary", std::move(summary)}, {"uid", pod.summary.uid}, {"state", pod.state}};
    if (pod.retry_at != wall_time{}) {
        const auto left = std::chrono::ceil<std::chrono::seconds>(pod.retry_at - now).count();
        answer["next"] = left > 0 ? "retry in " + std::to_string(left) + "s" : "retry now";
        answer["retryAt"] = base::format_rfc3339(pod.retry_at, 3);
    }
    base::json::array rows;
    for (const auto& step : steps) {
        rows.push_back(base::json::object{{"time", clock_time(step.started)},
                                          {"op", step.op},
                                          {"plugin", step.plugin},
                                          {"took", took(step.duration)},
                                          {"outcome", outcome(step)}});
        for (const auto& mark : step.steps)
            rows.push_back(base::json::object{{"time", clock_time(step.started + std::chrono::duration_cast<wall_time::duration>(mark.at))},
                                              {"op", "  " + mark.name},
                                              {"plugin", step.plugin},
                                              {"took", ""},
                                              {"outcome", ""}});
    }
    answer["steps"] = std::move(rows);
    base::json::array events;
    for (const auto& event : pod.events) events.push_back(event_object(event));
    answer["events"] = std::move(events);
    return answer;
}

} // namespace gantry::core::admin
