// Where a pod's cgroup is and what it is given, as the kubelet has it. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "gantry/sdk/result.hpp"
#include "plugins/common/cgroup/limits.hpp"
#include "plugins/node-linux/config.hpp"

namespace gantry::node_linux {

enum class qos { guaranteed, burstable, best_effort };
inline constexpr std::array all_qos{qos::guaranteed, qos::burstable, qos::best_effort};

/// A pod's sums; -1 where there is no limit.
struct pod_request {
    std::string uid;
    node_linux::qos qos = qos::best_effort;
    std::int64_t cpu_request_milli = 0;
    std::int64_t cpu_limit_milli = -1;
    std::int64_t memory_request = 0;
    std::int64_t memory_limit = -1;
    std::int64_t pids_limit = -1;
};

/// Reads the request of ensure_pod; the error names the member.
result<pod_request> parse_pod_request(std::string_view json);

/// {"uid"} of remove_pod and stats.
result<std::string> parse_uid(std::string_view json);

/// The cgroup paths of one node instance.
class paths {
public:
    paths(const std::string& cgroup_root, std::string_view node_instance)
        : top_(cgroup_root + "/gantry-" + std::string(node_instance)) {}

    const std::string& top() const { return top_; }
    std::string kubepods() const { return top_ + "/kubepods"; }
    /// The parent of the tier's pods: kubepods itself for Guaranteed ones.
    std::string tier(qos of) const;
    std::string pod(qos of, std::string_view uid) const { return tier(of) + "/pod" + std::string(uid); }

private:
    std::string top_;
};

/// The UID in a group's name ("pod1234"), empty for other groups.
std::string_view uid_of_group(std::string_view name);

/// Every limit of a pod's cgroup, lifted ones included, so that an update leaves nothing of before.
cgroup::limits pod_limits(const pod_request& pod, const config& settings);

/// CPU shares of the Burstable tier: what its pods request together.
std::uint64_t burstable_shares(std::int64_t requested_milli);

} // namespace gantry::node_linux
