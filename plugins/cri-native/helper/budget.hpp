// What one load may still use, shared by the processes that unpack its layers.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "gantry/sdk/result.hpp"

namespace gantry::cri_helper {

/// Lives in memory that the processes share; lock-free.
struct budget {
    std::uint64_t byte_limit = 0;
    std::uint64_t inode_limit = 0;
    std::atomic<std::uint64_t> bytes{0};
    std::atomic<std::uint64_t> inodes{0};

    result<void> take_bytes(std::uint64_t count) {
        if (bytes.fetch_add(count) + count <= byte_limit) return {};
        return error{.code = code::resource,
                     .message = "the image unpacks to more than " + std::to_string(byte_limit) +
                                " bytes (the limit, or what the disk has free)"};
    }
    result<void> take_inode() {
        if (inodes.fetch_add(1) + 1 <= inode_limit) return {};
        return error{.code = code::resource,
                     .message = "the image has more than " + std::to_string(inode_limit) + " entries (the limit)"};
    }
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

} // namespace gantry::cri_helper
