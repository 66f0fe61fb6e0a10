// Plugin libraries as files: found by name, trusted only when nobody but root can have written them, and loaded from a copy
// of exactly the bytes that were verified.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/host/descriptor.hpp"
#include "core/host/private_copy.hpp"
#include "gantry/sdk/result.hpp"

namespace gantry::core {

struct plugin_file {
    std::string path{};   ///< with symlinks resolved
    std::string sha256{};
    private_copy bytes{};
    std::vector<descriptor> plugins{};
};

/// Opens, verifies and parses a library. It and its directory must belong to root (or to the user this process runs as) and
/// be writable for nobody else; no directory above may let others replace them. [any, blocks]
result<plugin_file> open_plugin_file(const std::string& path);

/// Descriptors by file of the plugin directories, for `use:`. Files that are no plugins are left out, with the reason.
struct plugin_catalogue {
    struct entry {
        std::string path{};
        std::string name{};
    };
    std::vector<entry> entries{};
    std::vector<std::string> refused{}; ///< why a *.so was left out, one a file

    const entry* find(std::string_view name) const;
    std::vector<std::string> names() const;
};
plugin_catalogue scan_plugin_dirs(const std::vector<std::string>& dirs);

/// Writes the verified bytes to DIR/ID-SHA256.so (0555) by tmp + rename and returns that path. The dynamic loader matches
/// names: a path by content never yields other code than its own. [any, blocks]
result<std::string> install_verified(const plugin_file& file, const std::string& id, const std::string& dir);

/// Removes the copies of earlier runs: everything in `dir` but the paths to keep. [any, blocks]
void remove_other_copies(const std::string& dir, const std::vector<std::string>& keep);

/// The first of `dirs` (made, 0700) whose filesystem lets code be mapped: /run is often mounted noexec.
result<std::string> choose_library_dir(const std::vector<std::string>& dirs);

} // namespace gantry::core
