// The cgroups of one node instance: kubepods, its tiers and the pods.
#pragma once

#include <atomic>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "plugins/common/cgroup/cgroup.hpp"
#include "plugins/node-linux/pods.hpp"

namespace gantry::node_linux {

struct listed_pod {
    std::string uid;
    std::string group; ///< path below each hierarchy's mount point
};

/// Thread-safe; calls about one pod come one after another (the op's key).
class pod_tree {
public:
    pod_tree(cgroup::hierarchy hierarchy, node_linux::paths paths, config settings)
        : hierarchy_(std::move(hierarchy)), paths_(std::move(paths)), settings_(std::move(settings)) {}

    const cgroup::hierarchy& hierarchy() const { return hierarchy_; }

    /// Makes kubepods and its tiers; nothing to do once it has succeeded. [worker]
    result<void> prepare();
    /// Limits kubepods as a whole. [worker]
    result<void> bound(const amounts& bounds);
    bool is_bounded() const { return bounded_; }

    /// Makes the pod's group or brings it up to date; gives its path. [worker]
    result<std::string> ensure(const pod_request& pod);

    /// Kills what is inside, then removes it. [worker]
    result<void> remove(const std::string& uid, cgroup::time_point deadline);

    /// Every pod group there is, whoever made it, ordered by UID. [worker]
    result<std::vector<listed_pod>> list() const;

private:
    result<void> balance_tiers();

    cgroup::hierarchy hierarchy_;
    node_linux::paths paths_;
    config settings_;
    std::mutex mutex_;
    bool prepared_ = false;
    std::atomic<bool> bounded_{false};
    std::map<std::string, std::int64_t> burstable_milli_; ///< UID -> CPU request of the Burstable pods ensured so far
    std::uint64_t tier_shares_ = 0;                       ///< last written, 0 when unknown
};

} // namespace gantry::node_linux
