// Completes a layer with what only the layers below know: the files that its hard links point to, and the owner and
// mode of directories that it uses without describing them. Such a layer fits these lower layers only.
#pragma once

#include <sys/stat.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.hpp"
#include "gantry/sdk/result.hpp"
#include "plugins/cri-native/helper/applier.hpp"

namespace gantry::cri_helper {

/// Where a path of a stack of layers really lies.
struct located {
    base::unique_fd parent;
    std::string base;
    struct stat st {};
};

/// Looks `path` up as overlayfs would; `layers` are root descriptors, topmost first. Nothing when it does not exist
/// there (whited out, below an opaque directory, behind a symlink). [blocks]
result<std::optional<located>> locate(const std::vector<int>& layers, std::string_view path, bool user_xattr);

/// root_fd: the layer; below: the layers under it, topmost first. What is added counts in `summary` and `usage`.
result<void> settle(int root_fd, const std::vector<int>& below, layer_summary& summary, budget& usage, bool user_xattr);

} // namespace gantry::cri_helper
