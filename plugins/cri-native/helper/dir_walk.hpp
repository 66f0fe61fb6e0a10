// Walks to directories below a root one component at a time, each opened relative to the one above with O_NOFOLLOW: no
// path string, symlink, ".." or mount can lead elsewhere. Keeps the chain of the last directory open, since entries of
// an archive come directory by directory.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.hpp"
#include "gantry/sdk/result.hpp"

namespace gantry::cri_helper {

class dir_walk {
public:
    /// Called for a component that is missing, or is no directory: makes it a
    /// directory or fails.
    using on_obstacle = std::function<result<void>(int parent_fd, const std::string& name, const std::string& path)>;

    /// root_fd: borrowed, an open directory.
    explicit dir_walk(int root_fd) : root_fd_(root_fd) {}

    /// The directory at `path` (clean and relative; empty for the root), borrowed until the next call. Without
    /// `obstacle`, or if it does not help: nothing when a component is missing, an error when one is not a directory.
    result<std::optional<int>> enter(std::string_view path, const on_obstacle& obstacle = {});

    /// Must be called before the directory at `path` is removed or replaced.
    void forget(std::string_view path);

private:
    struct level {
        std::string name;
        base::unique_fd fd;
    };
    std::string path_to(std::size_t depth) const;

    int root_fd_;
    std::vector<level> levels_;
};

} // namespace gantry::cri_helper
