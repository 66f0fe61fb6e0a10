// Whether this node takes a pod. A refused pod fails at once and is not tried again.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "gantry/model/pod.hpp"

namespace gantry::core {

struct node_amounts {
    std::int64_t cpu_milli = 0;
    std::int64_t memory = 0;
    std::int64_t ephemeral_storage = 0;
    std::int64_t pods = 0;
};

/// Which kinds of plugins are bound.
struct bound_capabilities {
    bool volumes = false;
    bool probes = false;
    bool objects = false;
};

struct admission_facts {
    std::optional<node_amounts> allocatable{}; ///< nothing: no resources plugin, so no amounts are checked
    std::string node_name{};
    std::map<std::string, std::string> labels{};
    std::vector<std::string> allowed_unsafe_sysctls{}; ///< names, or prefixes that end in *
    bound_capabilities bound{};
};

struct admitted_pod {
    const model::pod* pod;
    bool ending; ///< being stopped: what it holds will be free soon
};

struct rejection {
    std::string reason;
    std::string message;
    bool later = false; ///< only ending pods stand in the way: ask again when one is gone
};

/// Nothing: admitted. others: the pods that are on the node already.
std::optional<rejection> admit(const model::pod& pod, const std::vector<admitted_pod>& others,
                               const admission_facts& facts);

/// Parts of admit.
std::optional<rejection> check_sysctls(const model::pod_spec& spec, const std::vector<std::string>& allowed_unsafe);
std::optional<rejection> check_node(const model::pod_spec& spec, const admission_facts& facts);
std::optional<rejection> check_features(const model::pod_spec& spec, const bound_capabilities& bound);

} // namespace gantry::core
