#include "plugins/cri-native/helper/dir_walk.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include "plugins/cri-native/helper/entry_name.hpp"

namespace gantry::cri_helper {

namespace {

base::unique_fd open_dir(int parent, const std::string& name) {
    return base::unique_fd(::openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

} // namespace

std::string dir_walk::path_to(std::size_t depth) const {
    std::string path;
    for (std::size_t i = 0; i < depth; ++i) path += (i == 0 ? "" : "/") + levels_[i].name;
    return path;
}

result<std::optional<int>> dir_walk::enter(std::string_view path, const on_obstacle& obstacle) {
    std::size_t depth = 0;
    for (std::size_t begin = 0; begin < path.size(); ++depth) {
        const auto end = std::min(path.find('/', begin), path.size());
        const auto name = path.substr(begin, end - begin);
        begin = end + 1;
        if (name.empty() || name == "." || name == "..")
            return error{.code = code::invalid, .message = quote(path) + " is not a clean path"};
        if (depth < levels_.size() && levels_[depth].name == name) continue;
        levels_.resize(depth);

        const int parent = depth == 0 ? root_fd_ : levels_.back().fd.get();
        level next{std::string(name), {}};
        next.fd = open_dir(parent, next.name);
        if (!next.fd && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP)) {
            const bool missing = errno == ENOENT;
            const auto here = std::string(path.substr(0, end));
            if (obstacle) {
                GANTRY_CHECK(obstacle(parent, next.name, here));
                next.fd = open_dir(parent, next.name);
            } else if (missing) {
                return std::optional<int>{};
            } else {
                return error{.code = code::invalid, .message = quote(here) + " is not a directory"};
            }
        }
        if (!next.fd) return sys_error("openat " + quote(path.substr(0, end)), errno);
        levels_.push_back(std::move(next));
    }
    levels_.resize(depth);
    return std::optional<int>(depth == 0 ? root_fd_ : levels_.back().fd.get());
}

void dir_walk::forget(std::string_view path) {
    for (std::size_t depth = 1; depth <= levels_.size(); ++depth)
        if (path_to(depth) == path) {
            levels_.resize(depth - 1);
            return;
        }
}

} // namespace gantry::cri_helper
