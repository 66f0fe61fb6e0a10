// The names under which a pod appears: labels and annotations of CRI objects, directories, and in messages.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "gantry/model/pod.hpp"

namespace gantry::core {

namespace cri_label {
inline constexpr const char* pod_name = "io.kubernetes.pod.name";
inline constexpr const char* pod_namespace = "io.kubernetes.pod.namespace";
inline constexpr const char* pod_uid = "io.kubernetes.pod.uid";
inline constexpr const char* container_name = "io.kubernetes.container.name";
} // namespace cri_label

namespace cri_annotation {
inline constexpr const char* hash = "io.kubernetes.container.hash";
inline constexpr const char* restart_count = "io.kubernetes.container.restartCount";
inline constexpr const char* termination_message_path = "io.kubernetes.container.terminationMessagePath";
inline constexpr const char* termination_message_policy = "io.kubernetes.container.terminationMessagePolicy";
inline constexpr const char* grace_period = "io.kubernetes.pod.terminationGracePeriod";
} // namespace cri_annotation

/// "NAME_NAMESPACE(UID)", as the kubelet writes a pod in events and messages.
std::string pod_title(const model::object_meta& meta);
/// "NAMESPACE/NAME".
std::string pod_key(const model::object_meta& meta);
/// Directory of a pod's logs below the node's log directory.
std::string pod_log_dir(const model::object_meta& meta);

/// Changes when the container has to be replaced: covers its name and image.
std::uint64_t container_hash(const model::container& c);
/// Changes when back-off has to start anew: covers image and resources.
std::uint64_t restart_hash(const model::container& c);

std::string to_hex(std::uint64_t value);
std::uint64_t from_hex(std::string_view text); ///< 0 for anything else

} // namespace gantry::core
