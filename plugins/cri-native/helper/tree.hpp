// Small operations on directory trees by descriptor.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>

#include "gantry/sdk/result.hpp"

namespace gantry::cri_helper {

/// overlayfs's mark for "hidden in the layers below": character device 0:0.
bool is_whiteout(const struct stat& st) noexcept;

/// rm -r of `name` in the directory parent_fd, without following anything and with bounded stack depth.
result<void> remove_at(int parent_fd, const char* name);

/// false with errno set on failure.
bool pwrite_all(int fd, const char* bytes, std::size_t size, std::uint64_t offset) noexcept;

} // namespace gantry::cri_helper
