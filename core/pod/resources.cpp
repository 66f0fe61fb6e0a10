#include "core/pod/resources.hpp"

#include <algorithm>

#include "core/pod/restart.hpp"

namespace gantry::core {

namespace {

using model::quantity;
using model::resource_list;
using member = resource_list model::resource_requirements::*;

const resource_list empty_list;

const resource_list& list_of(const model::container& c, member m) { return c.resources ? (*c.resources).*m : empty_list; }

void add(resource_list& sum, const resource_list& list) {
    for (const auto& [name, value] : list) sum[name] += value;
}

void raise(resource_list& max, const resource_list& list) {
    for (const auto& [name, value] : list) {
        auto& entry = max[name];
        entry = std::max(entry, value);
    }
}

resource_list aggregate(const model::pod_spec& spec, member m) {
    resource_list sum;
    for (const auto& c : spec.containers) add(sum, list_of(c, m));
    resource_list sidecars, init;
    for (const auto& c : spec.init_containers) {
        if (is_sidecar(c)) {
            add(sum, list_of(c, m));
            add(sidecars, list_of(c, m));
            raise(init, sidecars);
        } else {
            resource_list together = sidecars;
            add(together, list_of(c, m));
            raise(init, together);
        }
    }
    raise(sum, init);
    if (spec.resources)
        for (const auto& [name, value] : (*spec.resources).*m) sum[name] = value;
    return sum;
}

/// True when every container limits this resource, so that a limit of the whole pod says something.
bool limited_everywhere(const model::pod_spec& spec, const std::string& name) {
    if (spec.resources && !amount(spec.resources->limits, name).is_zero()) return true;
    const auto limited = [&](const model::container& c) {
        return !amount(list_of(c, &model::resource_requirements::limits), name).is_zero();
    };
    return std::all_of(spec.containers.begin(), spec.containers.end(), limited) &&
           std::all_of(spec.init_containers.begin(), spec.init_containers.end(), limited);
}

constexpr const char* qos_resources[] = {"cpu", "memory"};

bool asks(const model::resource_requirements& r) {
    for (const auto* name : qos_resources)
        if (!amount(r.limits, name).is_zero() || !amount(r.requests, name).is_zero()) return true;
    return false;
}

bool guaranteed(const model::resource_requirements& r) {
    for (const auto* name : qos_resources)
        if (amount(r.limits, name).is_zero() || amount(r.limits, name) != amount(r.requests, name)) return false;
    return true;
}

} // namespace

quantity amount(const resource_list& list, const std::string& name) {
    const auto it = list.find(name);
    return it == list.end() ? quantity() : it->second;
}

std::string qos_class(const model::pod_spec& spec) {
    if (spec.resources && asks(*spec.resources)) return guaranteed(*spec.resources) ? "Guaranteed" : "Burstable";
    bool any = false, all = true;
    for (const auto* list : {&spec.containers, &spec.init_containers})
        for (const auto& c : *list) {
            any = any || (c.resources && asks(*c.resources));
            all = all && c.resources && guaranteed(*c.resources);
        }
    if (!any) return "BestEffort";
    return all ? "Guaranteed" : "Burstable";
}

resource_list pod_requests(const model::pod_spec& spec) {
    auto sum = aggregate(spec, &model::resource_requirements::requests);
    add(sum, spec.overhead);
    return sum;
}

resource_list pod_limits(const model::pod_spec& spec) {
    auto sum = aggregate(spec, &model::resource_requirements::limits);
    for (const auto& [name, value] : spec.overhead)
        if (const auto it = sum.find(name); it != sum.end()) it->second += value;
    return sum;
}

pod_cgroup_values pod_cgroup(const model::pod_spec& spec) {
    pod_cgroup_values out;
    if (qos_class(spec) == "BestEffort") return out;
    const auto requests = pod_requests(spec), limits = pod_limits(spec);
    out.cpu_request_milli = amount(requests, "cpu").milli();
    out.memory_request = amount(requests, "memory").units();
    if (limited_everywhere(spec, "cpu")) out.cpu_limit_milli = amount(limits, "cpu").milli();
    if (limited_everywhere(spec, "memory")) out.memory_limit = amount(limits, "memory").units();
    return out;
}

std::int64_t cpu_shares(std::int64_t milli) {
    constexpr std::int64_t least = 2, most = 262'144;
    if (milli >= most) return most; // also keeps the product in range
    return std::clamp(milli * 1024 / 1000, least, most);
}

std::int64_t cpu_quota(std::int64_t milli) {
    constexpr std::int64_t least_us = 1000;
    if (milli == 0) return 0;
    return std::max(milli * cpu_period_us / 1000, least_us);
}

std::int64_t oom_score_adj(const model::pod_spec& spec, const model::container& c, std::int64_t memory_capacity) {
    constexpr std::int64_t protect = -997, first = 1000, node_critical = 2'000'001'000;
    if (spec.priority.value_or(0) >= node_critical) return protect;
    const auto qos = qos_class(spec);
    if (qos == "Guaranteed") return protect;
    if (qos == "BestEffort" || memory_capacity <= 0) return first;
    const auto score = [&](const model::container& one) {
        const auto request = amount(list_of(one, &model::resource_requirements::requests), "memory").units();
        const auto taken = static_cast<std::int64_t>(1000.0L * static_cast<long double>(request) /
                                                     static_cast<long double>(memory_capacity));
        return std::clamp(first - taken, first + protect, first - 1);
    };
    auto own = score(c);
    // A sidecar goes after the containers that it serves.
    if (is_sidecar(c))
        for (const auto& other : spec.containers) own = std::min(own, score(other));
    return own;
}

} // namespace gantry::core
