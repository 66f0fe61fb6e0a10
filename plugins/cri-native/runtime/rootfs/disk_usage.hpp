// Bytes and inodes of directory trees.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "gantry/sdk/result.hpp"

namespace gantry::cri_native {

struct disk_usage {
    std::uint64_t bytes = 0; ///< allocated on disk
    std::uint64_t inodes = 0;
};

/// Walks a tree on one file system; hard links count once for each name. 0 for a tree that does not exist. [worker]
disk_usage measure_tree(const std::string& dir);

/// Remembers measurements for a while: walking a large tree costs more than reading everything else about a container.
/// A tree that took long is walked less often, so that at most about 1 % of the time goes into it. [any]
class disk_usage_cache {
public:
    disk_usage of(const std::string& dir); ///< [worker]
    void forget(const std::string& dir);

private:
    using clock = std::chrono::steady_clock;
    struct entry {
        disk_usage usage;
        clock::time_point valid_until;
    };
    std::mutex mutex_;
    std::map<std::string, entry> entries_;
};

} // namespace gantry::cri_native
