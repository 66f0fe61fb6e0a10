#include "plugins/cri-native/helper/settle.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include <array>

#include "plugins/cri-native/helper/dir_walk.hpp"
#include "plugins/cri-native/helper/tree.hpp"

namespace gantry::cri_helper {

namespace {

base::unique_fd open_dir(int parent, const std::string& name) {
    return base::unique_fd(::openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

bool is_opaque(int dir_fd, bool user_xattr) {
    char mark = 0;
    return ::fgetxattr(dir_fd, user_xattr ? "user.overlay.opaque" : "trusted.overlay.opaque", &mark, 1) == 1 &&
           mark == 'y';
}

result<void> copy_xattrs(int from, int to) {
    std::array<char, 65536> names;
    const ssize_t size = ::flistxattr(from, names.data(), names.size());
    if (size < 0) return errno == ENOTSUP ? result<void>{} : sys_error("flistxattr", errno);
    std::vector<char> value(65536);
    for (const char* name = names.data(); name < names.data() + size; name += std::string_view(name).size() + 1) {
        const std::string_view key = name;
        if (key.starts_with("trusted.") || key.starts_with("user.overlay.")) continue;
        const ssize_t length = ::fgetxattr(from, name, value.data(), value.size());
        if (length < 0) return sys_error("fgetxattr " + std::string(key), errno);
        if (::fsetxattr(to, name, value.data(), static_cast<std::size_t>(length), 0) != 0 && errno != ENOTSUP)
            return sys_error("fsetxattr " + std::string(key), errno);
    }
    return {};
}

result<void> copy_description(int from, int to, const struct stat& st) {
    if (::fchown(to, st.st_uid, st.st_gid) != 0) return sys_error("fchown", errno);
    if (::fchmod(to, st.st_mode & 07777) != 0) return sys_error("fchmod", errno);
    GANTRY_CHECK(copy_xattrs(from, to));
    const timespec times[] = {st.st_mtim, st.st_mtim};
    if (::futimens(to, times) != 0) return sys_error("futimens", errno);
    return {};
}

class settler {
public:
    settler(int root_fd, const std::vector<int>& below, layer_summary& summary, budget& usage, bool user_xattr)
        : below_(below), summary_(summary), usage_(usage), user_xattr_(user_xattr), walk_(root_fd),
          link_walk_(root_fd) {}

    result<void> link(const std::string& path, const std::string& target) {
        const auto [target_parent, target_base] = split(target);
        GANTRY_TRY(const int from, enter(walk_, target_parent));
        struct stat st {};
        if (::fstatat(from, target_base.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0)
            GANTRY_CHECK(copy_up(from, target_base, target));
        const auto [parent, base] = split(path);
        GANTRY_TRY(const int to, enter(link_walk_, parent));
        if (path != target && ::linkat(from, target_base.c_str(), to, base.c_str(), 0) != 0)
            return sys_error("linkat to " + quote(target), errno);
        return {};
    }

    result<void> describe(const std::string& path) {
        GANTRY_TRY(const auto lower, locate(below_, path, user_xattr_));
        if (!lower || !S_ISDIR(lower->st.st_mode)) return {};
        const auto from = open_dir(lower->parent.get(), lower->base);
        if (!from) return sys_error("openat", errno);
        GANTRY_TRY(const auto to, walk_.enter(path));
        return to ? copy_description(from.get(), *to, lower->st) : result<void>{};
    }

    std::set<std::string> made; ///< directories made here, to be described too

private:
    static std::pair<std::string, std::string> split(const std::string& path) {
        const auto slash = path.rfind('/');
        if (slash == std::string::npos) return {"", path};
        return {path.substr(0, slash), path.substr(slash + 1)};
    }

    result<int> enter(dir_walk& walk, const std::string& path) {
        GANTRY_TRY(const auto fd,
                   walk.enter(path, [&](int parent, const std::string& name, const std::string& here) -> result<void> {
                       GANTRY_CHECK(take(0));
                       if (::mkdirat(parent, name.c_str(), 0755) != 0)
                           return sys_error("mkdirat " + quote(here), errno);
                       made.insert(here);
                       return {};
                   }));
        return fd.value();
    }

    result<void> take(std::uint64_t bytes) {
        ++summary_.inodes;
        summary_.bytes += bytes;
        GANTRY_CHECK(usage_.take_inode());
        return usage_.take_bytes(bytes);
    }

    result<void> copy_up(int to_parent, const std::string& to_base, const std::string& path) {
        GANTRY_TRY(const auto lower, locate(below_, path, user_xattr_));
        if (!lower)
            return error{.code = code::invalid, .message = "its hard link target " + quote(path) + " is in no layer"};
        if (!S_ISREG(lower->st.st_mode))
            return error{.code = code::invalid,
                         .message = "its hard link target " + quote(path) + " is no regular file"};
        GANTRY_CHECK(take(static_cast<std::uint64_t>(lower->st.st_size)));
        base::unique_fd from(::openat(lower->parent.get(), lower->base.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
        if (!from) return sys_error("openat " + quote(path), errno);
        base::unique_fd to(
            ::openat(to_parent, to_base.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
        if (!to) return sys_error("create " + quote(path), errno);
        std::vector<char> block(256u << 10);
        std::uint64_t offset = 0;
        while (true) {
            const ssize_t n = ::pread(from.get(), block.data(), block.size(), static_cast<off_t>(offset));
            if (n < 0 && errno == EINTR) continue;
            if (n < 0) return sys_error("read " + quote(path), errno);
            if (n == 0) break;
            if (!pwrite_all(to.get(), block.data(), static_cast<std::size_t>(n), offset))
                return sys_error("pwrite " + quote(path), errno);
            offset += static_cast<std::uint64_t>(n);
        }
        return copy_description(from.get(), to.get(), lower->st);
    }

    const std::vector<int>& below_;
    layer_summary& summary_;
    budget& usage_;
    bool user_xattr_;
    dir_walk walk_;
    dir_walk link_walk_;
};

} // namespace

result<std::optional<located>> locate(const std::vector<int>& layers, std::string_view path, bool user_xattr) {
    std::vector<base::unique_fd> opened;
    std::vector<int> merged = layers;
    for (std::size_t begin = 0; begin < path.size();) {
        const auto end = std::min(path.find('/', begin), path.size());
        const std::string name(path.substr(begin, end - begin));
        const bool last = end == path.size();
        begin = end + 1;
        std::vector<base::unique_fd> next;
        for (const int dir : merged) {
            struct stat st {};
            if (::fstatat(dir, name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0) {
                if (errno != ENOENT) return sys_error("fstatat " + quote(path), errno);
                continue;
            }
            if (is_whiteout(st)) break;
            if (last) {
                base::unique_fd parent(::fcntl(dir, F_DUPFD_CLOEXEC, 0));
                if (!parent) return sys_error("dup", errno);
                return std::optional<located>(located{std::move(parent), name, st});
            }
            if (!S_ISDIR(st.st_mode)) break;
            next.push_back(open_dir(dir, name));
            if (!next.back()) return sys_error("openat " + quote(path), errno);
            if (is_opaque(next.back().get(), user_xattr)) break;
        }
        opened = std::move(next);
        merged.clear();
        for (const auto& fd : opened) merged.push_back(fd.get());
    }
    return std::optional<located>{};
}

result<void> settle(int root_fd, const std::vector<int>& below, layer_summary& summary, budget& usage,
                    bool user_xattr) {
    settler work(root_fd, below, summary, usage, user_xattr);
    for (const auto& [path, target] : summary.lower_links) {
        auto linked = work.link(path, target);
        if (!linked) {
            linked.error().message = "entry " + quote(path) + ": " + linked.error().message;
            return linked;
        }
    }
    work.made.insert(summary.implied.begin(), summary.implied.end());
    for (const auto& path : work.made) GANTRY_CHECK(work.describe(path));
    return {};
}

} // namespace gantry::cri_helper
