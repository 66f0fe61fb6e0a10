#include "plugins/cri-native/runtime/rootfs/lookup.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <deque>
#include <memory>

#include "base/unique_fd.hpp"

namespace gantry::cri_native {

namespace {

using base::unique_fd;

/// One directory of the merged image: its pieces in the layers that have it, top first.
using merged_dir = std::vector<std::shared_ptr<unique_fd>>;

struct found_entry {
    std::shared_ptr<unique_fd> parent{}; ///< null when the name does not exist
    mode_t mode = 0;
    merged_dir children{}; ///< set for directories
};

bool is_opaque(int dir_fd) {
    char value = 0;
    for (const char* name : {"trusted.overlay.opaque", "user.overlay.opaque"})
        if (::fgetxattr(dir_fd, name, &value, 1) == 1 && value == 'y') return true;
    return false;
}

/// Finds `name` as overlayfs does: the topmost entry decides the type; directories merge downwards until something
/// else, a whiteout or an opaque directory stops them.
result<found_entry> find_entry(const merged_dir& dir, const std::string& name) {
    found_entry found;
    for (const auto& piece : dir) {
        struct stat st {};
        if (::fstatat(piece->get(), name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0) {
            if (errno == ENOENT) continue;
            return sys_error("stat " + name + " in an image layer", errno);
        }
        if (S_ISCHR(st.st_mode) && st.st_rdev == makedev(0, 0)) break;
        if (found.parent && !S_ISDIR(st.st_mode)) break;
        if (!found.parent) {
            found.parent = piece;
            found.mode = st.st_mode;
        }
        if (!S_ISDIR(st.st_mode)) break;
        unique_fd child(::openat(piece->get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
        if (!child) return sys_error("open " + name + " in an image layer", errno);
        const bool opaque = is_opaque(child.get());
        found.children.push_back(std::make_shared<unique_fd>(std::move(child)));
        if (opaque) break;
    }
    return found;
}

void push_components(std::deque<std::string>& todo, const std::string& path) {
    std::deque<std::string> parts;
    std::size_t start = 0;
    while (start <= path.size()) {
        const auto slash = std::min(path.find('/', start), path.size());
        if (slash > start) parts.push_back(path.substr(start, slash - start));
        start = slash + 1;
    }
    todo.insert(todo.begin(), parts.begin(), parts.end());
}

result<std::string> link_target(int parent, const std::string& name) {
    char target[4096];
    const ssize_t n = ::readlinkat(parent, name.c_str(), target, sizeof target);
    if (n < 0) return sys_error("readlink " + name + " in an image layer", errno);
    return std::string(target, static_cast<std::size_t>(n));
}

result<std::optional<std::string>> read_regular(int parent, const std::string& name, const std::string& path,
                                                std::size_t limit) {
    unique_fd fd(::openat(parent, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (!fd) return sys_error("open " + path + " in an image layer", errno);
    std::string bytes;
    char buffer[4096];
    for (;;) {
        const ssize_t n = ::read(fd.get(), buffer, sizeof buffer);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return sys_error("read " + path + " in an image layer", errno);
        if (n == 0) return std::optional(std::move(bytes));
        bytes.append(buffer, static_cast<std::size_t>(n));
        if (bytes.size() > limit)
            return error{.code = code::invalid,
                         .message = "the image's " + path + " is larger than " + std::to_string(limit) + " bytes"};
    }
}

} // namespace

result<std::optional<std::string>> read_image_file(const std::vector<std::string>& layers, const std::string& path,
                                                   std::size_t limit) {
    std::vector<merged_dir> stack(1);
    for (const auto& layer : layers) {
        unique_fd fd(::open(layer.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        if (!fd) return sys_error("open image layer " + layer, errno);
        stack.front().push_back(std::make_shared<unique_fd>(std::move(fd)));
    }
    std::deque<std::string> todo;
    push_components(todo, path);
    for (int links = 0; !todo.empty();) {
        const std::string name = std::move(todo.front());
        todo.pop_front();
        if (name == ".") continue;
        if (name == "..") {
            if (stack.size() > 1) stack.pop_back();
            continue;
        }
        GANTRY_TRY(auto entry, find_entry(stack.back(), name));
        if (!entry.parent) return std::optional<std::string>{};
        if (S_ISLNK(entry.mode)) {
            if (++links > 40)
                return error{.code = code::invalid, .message = "the image's " + path + " is a loop of symlinks"};
            GANTRY_TRY(const auto target, link_target(entry.parent->get(), name));
            if (!target.empty() && target.front() == '/') stack.resize(1);
            push_components(todo, target);
            continue;
        }
        if (S_ISDIR(entry.mode)) {
            stack.push_back(std::move(entry.children));
            continue;
        }
        if (!S_ISREG(entry.mode) || !todo.empty()) return std::optional<std::string>{};
        return read_regular(entry.parent->get(), name, path, limit);
    }
    return std::optional<std::string>{};
}

} // namespace gantry::cri_native
