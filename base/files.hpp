// Whole-file reads and crash-safe writes.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.hpp"
#include "gantry/sdk/result.hpp"

namespace gantry::base {

/// The file's bytes. Fails with code::resource past `limit` bytes. [any, blocks]
result<std::string> read_file(const std::string& path, std::size_t limit = 64u << 20);

/// Replaces path by tmp + rename in the same directory: a reader, or a boot after kill -9, sees the old or the new
/// content, never a part. With `durable` the file and its directory are synced first (power loss). [any, blocks]
result<void> write_file_atomic(const std::string& path, std::string_view bytes, mode_t mode = 0600, bool durable = false);

/// mkdir -p; an existing directory keeps its mode. [any, blocks]
result<void> make_dirs(const std::string& path, mode_t mode = 0700);

/// Names in a directory without "." and "..", sorted; empty when the directory does not exist. [any, blocks]
result<std::vector<std::string>> list_dir(const std::string& path);

/// rm -r without following symlinks or crossing into mounts; success when nothing is there. [any, blocks]
result<void> remove_tree(const std::string& path);

} // namespace gantry::base
