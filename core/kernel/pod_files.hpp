// The files of a pod on this node.
#pragma once

#include <cstdint>
#include <string>

#include "gantry/sdk/result.hpp"

namespace gantry::core {

/// STATE_DIR/pods/UID
std::string pod_dir(const std::string& state_dir, const std::string& uid);
/// The file behind /etc/hosts of every container of the pod.
std::string hosts_path(const std::string& state_dir, const std::string& uid);
/// The file behind terminationMessagePath of one instance of a container.
std::string termination_path(const std::string& state_dir, const std::string& uid, const std::string& container,
                             std::uint32_t attempt);

/// Makes an empty file that any user in the container can write. [any, blocks]
result<void> make_termination_file(const std::string& path);
/// The last `limit` bytes of a file; empty when there is none. [any, blocks]
std::string read_tail(const std::string& path, std::size_t limit);

} // namespace gantry::core
