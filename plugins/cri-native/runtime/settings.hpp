// cri-native's configuration.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "gantry/sdk/result.hpp"

namespace gantry::cri_native {

struct settings {
    std::string image_dir{};             ///< imageDir; empty: images/ below the instance's state directory
    std::string helper_dir{};            ///< helperDir; empty: lib/gantry/libexec of the node's installation
    std::uint64_t open_files = 1u << 20; ///< openFiles: RLIMIT_NOFILE of containers
    std::uint64_t shm_bytes = 64u << 20; ///< shmSizeMiB: the pod's /dev/shm
};

/// From the config document, which the host has validated against the descriptor's schema. [any]
result<settings> parse_settings(std::string_view json);

/// The absolute path of a helper program: in helper_dir if that is set, else where the build and the packages put it,
/// relative to the running program. code::not_found names the places. [worker]
result<std::string> find_helper(const settings& from, std::string_view name);

} // namespace gantry::cri_native
