#include "plugins/node-linux/pods.hpp"

#include <algorithm>

#include "base/invalid.hpp"
#include "base/json.hpp"
#include "plugins/common/cgroup/units.hpp"

namespace gantry::node_linux {

namespace {

namespace json = base::json;

/// UIDs become directory names.
result<std::string> checked_uid(const json::object& root) {
    const auto* value = root.if_contains("uid");
    if (value == nullptr || !value->is_string()) return invalid("uid: required, a string");
    const std::string uid(value->get_string());
    const bool plain = std::all_of(uid.begin(), uid.end(), [](char c) {
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_' ||
               c == '.';
    });
    if (uid.empty() || uid.size() > 200 || !plain)
        return invalid("uid: \"" + uid + "\" is no pod UID (1 to 200 of letters, digits, '-', '_', '.')");
    return uid;
}

result<qos> qos_of(const json::object& root) {
    const auto* value = root.if_contains("qos");
    const auto text =
        value != nullptr && value->is_string() ? std::string_view(value->get_string()) : std::string_view();
    if (text == "Guaranteed") return qos::guaranteed;
    if (text == "Burstable") return qos::burstable;
    if (text == "BestEffort") return qos::best_effort;
    return invalid("qos: \"" + std::string(text) + "\" is none of Guaranteed, Burstable, BestEffort");
}

result<json::object> object_of(std::string_view text) {
    GANTRY_TRY(auto value, base::parse_json(text.empty() ? "{}" : text, "request"));
    if (!value.is_object()) return invalid("the request is no JSON object");
    return std::move(value.get_object());
}

} // namespace

result<pod_request> parse_pod_request(std::string_view text) {
    GANTRY_TRY(const auto root, object_of(text));
    pod_request out;
    GANTRY_TRY(out.uid, checked_uid(root));
    GANTRY_TRY(out.qos, qos_of(root));
    const auto* resources = root.if_contains("resources");
    if (resources == nullptr) return out;
    if (!resources->is_object()) return invalid("resources: not an object");
    const std::pair<std::string_view, std::int64_t*> members[] = {
        {"cpuRequestMilli", &out.cpu_request_milli},
        {"cpuLimitMilli", &out.cpu_limit_milli},
        {"memoryRequest", &out.memory_request},
        {"memoryLimit", &out.memory_limit},
        {"pidsLimit", &out.pids_limit},
    };
    for (const auto& [key, target] : members) {
        const auto* value = resources->get_object().if_contains(key);
        if (value == nullptr || value->is_null()) continue;
        if (!value->is_int64() || value->get_int64() < -1)
            return invalid("resources." + std::string(key) + ": " + base::to_text(*value) +
                           " is no whole number from -1 up");
        *target = value->get_int64();
    }
    return out;
}

result<std::string> parse_uid(std::string_view text) {
    GANTRY_TRY(const auto root, object_of(text));
    return checked_uid(root);
}

std::string paths::tier(qos of) const {
    switch (of) {
    case qos::guaranteed: return kubepods();
    case qos::burstable: return kubepods() + "/burstable";
    case qos::best_effort: break;
    }
    return kubepods() + "/besteffort";
}

std::string_view uid_of_group(std::string_view name) {
    return name.starts_with("pod") ? name.substr(3) : std::string_view();
}

cgroup::limits pod_limits(const pod_request& pod, const config& settings) {
    const bool best_effort = pod.qos == qos::best_effort;
    const auto bound = [](std::int64_t a, std::int64_t b) { return a < 0 ? b : b < 0 ? a : std::min(a, b); };
    return {
        .cpu_shares = cgroup::shares_of_milli(best_effort ? 0 : pod.cpu_request_milli),
        .cpu_quota_us = settings.cpu_quota && !best_effort
                            ? cgroup::quota_of_milli(pod.cpu_limit_milli, settings.cpu_period_us)
                            : cgroup::unlimited,
        .cpu_period_us = settings.cpu_period_us,
        .memory_max = best_effort || pod.memory_limit <= 0 ? cgroup::unlimited : pod.memory_limit,
        .pids_max = bound(pod.pids_limit, settings.pod_pids_limit),
    };
}

std::uint64_t burstable_shares(std::int64_t requested_milli) { return cgroup::shares_of_milli(requested_milli); }

} // namespace gantry::node_linux
