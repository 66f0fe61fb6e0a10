// CRI's answers about sandboxes and containers.
#pragma once

#include <string>

#include "plugins/cri-native/runtime/model.hpp"
#include "proto/cri.pb.h"

namespace gantry::cri_native {

runtime::v1::PodSandboxState state_of(const sandbox& pod);
runtime::v1::ContainerState state_of(const container& one);

runtime::v1::PodSandboxStatus status_of(const sandbox& pod);
runtime::v1::ContainerStatus status_of(const container& one);
runtime::v1::PodSandbox summary_of(const sandbox& pod);
runtime::v1::Container summary_of(const container& one);
runtime::v1::ContainerAttributes attributes_of(const container& one);

/// Every label of the selector is there with that value.
template <class Labels>
bool selects(const Labels& selector, const Labels& labels) {
    for (const auto& [key, value] : selector) {
        const auto found = labels.find(key);
        if (found == labels.end() || found->second != value) return false;
    }
    return true;
}

/// An id filter: empty, the id, or a prefix of it.
inline bool id_matches(const std::string& filter, const std::string& id) {
    return id.compare(0, filter.size(), filter) == 0;
}

bool matches(const runtime::v1::PodSandboxFilter& filter, const sandbox& pod);
bool matches(const runtime::v1::ContainerFilter& filter, const container& one);
bool matches(const runtime::v1::ContainerStatsFilter& filter, const container& one);

/// Verbose status, `info` of CRI: one JSON object with the first process's id, its cgroup and so on.
std::string verbose_info(const container& one);
std::string verbose_info(const sandbox& pod);

} // namespace gantry::cri_native
