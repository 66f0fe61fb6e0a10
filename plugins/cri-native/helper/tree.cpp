#include "plugins/cri-native/helper/tree.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "base/unique_fd.hpp"

namespace gantry::cri_helper {

namespace {

struct dir_closer {
    void operator()(DIR* dir) const noexcept { ::closedir(dir); }
};

struct level {
    std::string name;
    std::unique_ptr<DIR, dir_closer> dir;
};

} // namespace

bool is_whiteout(const struct stat& st) noexcept { return S_ISCHR(st.st_mode) && st.st_rdev == makedev(0, 0); }

result<void> remove_at(int parent_fd, const char* name) {
    std::vector<level> levels;
    const auto descend = [&](int parent, const char* child) -> result<void> {
        const int fd = ::openat(parent, child, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0) return sys_error("openat", errno);
        level next{child, std::unique_ptr<DIR, dir_closer>(::fdopendir(fd))};
        if (!next.dir) return sys_error("fdopendir", errno);
        levels.push_back(std::move(next));
        return {};
    };
    GANTRY_CHECK(descend(parent_fd, name));
    while (!levels.empty()) {
        DIR* dir = levels.back().dir.get();
        if (const dirent* child = ::readdir(dir)) {
            const std::string_view child_name = child->d_name;
            if (child_name == "." || child_name == "..") continue;
            if (::unlinkat(::dirfd(dir), child->d_name, 0) == 0) continue;
            if (errno != EISDIR) return sys_error("unlinkat", errno);
            GANTRY_CHECK(descend(::dirfd(dir), child->d_name));
            continue;
        }
        const std::string done = std::move(levels.back().name);
        levels.pop_back();
        if (::unlinkat(levels.empty() ? parent_fd : ::dirfd(levels.back().dir.get()), done.c_str(), AT_REMOVEDIR) != 0)
            return sys_error("unlinkat", errno);
    }
    return {};
}

bool pwrite_all(int fd, const char* bytes, std::size_t size, std::uint64_t offset) noexcept {
    while (size > 0) {
        const ssize_t n = ::pwrite(fd, bytes, size, static_cast<off_t>(offset));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return false;
        bytes += n;
        offset += static_cast<std::uint64_t>(n);
        size -= static_cast<std::size_t>(n);
    }
    return true;
}

} // namespace gantry::cri_helper
