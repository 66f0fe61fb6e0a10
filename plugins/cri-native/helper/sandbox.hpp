// What a process of the helper gives up before it looks at hostile bytes.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "gantry/sdk/result.hpp"

namespace gantry::cri_helper {

/// The process sees nothing but the directory `work` (read-write, as "/") and `lower` (read-only, as "/lower"): a mount
/// namespace of its own, pivoted; no network, no System V IPC. Both descriptors are closed. Single-threaded callers
/// only.
result<void> confine_to(int work_fd, int lower_fd);

/// Narrows a confined process to one directory below its root; its root and working directory become `path`.
result<void> narrow_to(const char* path);

/// No core dumps, files of at most file_bytes, bounded address space.
result<void> limit_resources(std::uint64_t file_bytes);

/// What the process still has to do. Each role is a list of system calls and capabilities; the rest fails with EPERM.
enum class role {
    coordinate, ///< parse manifests, fork the other two
    pump,       ///< read the archive, decompress, write a pipe: no files, no capability
    unpack,     ///< create files of any owner, mode, type and xattr below its root
};

/// Drops every capability (bounding set included) and system call that the role does not need, for good.
/// `trusted_xattr` and `device_nodes` keep what these need.
struct powers {
    bool trusted_xattr = false;
    bool device_nodes = false;
};
result<void> assume(role r, powers p);

} // namespace gantry::cri_helper
