#include "plugins/node-linux/tree.hpp"

#include <algorithm>
#include <numeric>

#include "plugins/common/cgroup/control_file.hpp"

namespace gantry::node_linux {

namespace {

/// Milli-CPU that a Burstable pod of an earlier run asked for, as well as its group still tells.
std::int64_t milli_of_group(const cgroup::hierarchy& hierarchy, const std::string& group) {
    const std::string directory = hierarchy.directory(group, "cpu");
    if (hierarchy.version() == cgroup::version::v1)
        return static_cast<std::int64_t>(cgroup::read_number(directory + "/cpu.shares")) * 1000 / 1024;
    return cgroup::milli_of_weight(cgroup::read_number(directory + "/cpu.weight"));
}

} // namespace

result<void> pod_tree::prepare() {
    const std::lock_guard lock(mutex_);
    if (prepared_) return {};
    for (const auto tier : all_qos) GANTRY_CHECK(hierarchy_.create(paths_.tier(tier), {}));
    GANTRY_CHECK(hierarchy_.apply(paths_.tier(qos::best_effort), {.cpu_shares = cgroup::shares_of_milli(0)}));

    GANTRY_TRY(const auto names, hierarchy_.children(paths_.tier(qos::burstable)));
    for (const auto& name : names)
        if (const auto uid = uid_of_group(name); !uid.empty())
            burstable_milli_.try_emplace(std::string(uid), milli_of_group(hierarchy_, paths_.pod(qos::burstable, uid)));
    GANTRY_CHECK(balance_tiers());
    prepared_ = true;
    return {};
}

result<void> pod_tree::bound(const amounts& bounds) {
    cgroup::limits top{.cpu_shares = cgroup::shares_of_milli(bounds.cpu_milli)};
    if (settings_.enforce_allocatable) {
        top.memory_max = bounds.memory;
        top.pids_max = bounds.pids;
    }
    GANTRY_CHECK(hierarchy_.apply(paths_.kubepods(), top));
    bounded_ = true;
    return {};
}

result<void> pod_tree::balance_tiers() {
    const auto requested = std::accumulate(burstable_milli_.begin(), burstable_milli_.end(), std::int64_t{0},
                                           [](std::int64_t sum, const auto& pod) { return sum + pod.second; });
    const auto shares = burstable_shares(requested);
    if (shares == tier_shares_) return {};
    GANTRY_CHECK(hierarchy_.apply(paths_.tier(qos::burstable), {.cpu_shares = shares}));
    tier_shares_ = shares;
    return {};
}

result<std::string> pod_tree::ensure(const pod_request& pod) {
    const std::string group = paths_.pod(pod.qos, pod.uid);
    const auto wanted = pod_limits(pod, settings_);
    if (hierarchy_.exists(group)) {
        GANTRY_CHECK(hierarchy_.create(group, {})); // a crash may have left it half made
        GANTRY_CHECK(hierarchy_.apply(group, wanted));
    } else {
        GANTRY_CHECK(hierarchy_.create(group, wanted));
    }
    if (pod.qos == qos::burstable) {
        const std::lock_guard lock(mutex_);
        burstable_milli_[pod.uid] = pod.cpu_request_milli;
        GANTRY_CHECK(balance_tiers());
    }
    return group;
}

result<void> pod_tree::remove(const std::string& uid, cgroup::time_point deadline) {
    for (const auto tier : all_qos) {
        const std::string group = paths_.pod(tier, uid);
        if (!hierarchy_.exists(group)) continue;
        GANTRY_CHECK(hierarchy_.kill_all(group, deadline));
        GANTRY_CHECK(hierarchy_.wait_empty(group, deadline));
        GANTRY_CHECK(hierarchy_.remove(group, deadline));
    }
    const std::lock_guard lock(mutex_);
    if (burstable_milli_.erase(uid) > 0) GANTRY_CHECK(balance_tiers());
    return {};
}

result<std::vector<listed_pod>> pod_tree::list() const {
    std::vector<listed_pod> pods;
    for (const auto tier : all_qos) {
        GANTRY_TRY(const auto names, hierarchy_.children(paths_.tier(tier)));
        for (const auto& name : names)
            if (const auto uid = uid_of_group(name); !uid.empty())
                pods.push_back({std::string(uid), paths_.pod(tier, uid)});
    }
    std::sort(pods.begin(), pods.end(), [](const auto& a, const auto& b) { return a.uid < b.uid; });
    return pods;
}

} // namespace gantry::node_linux
