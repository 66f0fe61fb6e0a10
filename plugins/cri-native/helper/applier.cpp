#include "plugins/cri-native/helper/applier.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#include "base/invalid.hpp"
#include "plugins/cri-native/helper/tree.hpp"

namespace gantry::cri_helper {

struct applier::place {
    const tar_entry& entry;
    int parent;
    const char* base;
    std::string path;
};

namespace {

error failed(std::string_view call) { return sys_error(call, errno); }

/// Removes `path` and what lies below it from an ordered container of paths.
template <class Container>
void erase_below(Container& paths, const std::string& path) {
    paths.erase(path);
    const auto prefix = path + "/";
    auto it = paths.lower_bound(prefix);
    const auto key = [](const auto& item) -> const std::string& {
        if constexpr (requires { item.first; })
            return item.first;
        else
            return item;
    };
    while (it != paths.end() && key(*it).starts_with(prefix)) it = paths.erase(it);
}

} // namespace

applier::applier(int root_fd, budget& usage, apply_options options)
    : root_fd_(root_fd), usage_(usage), options_(std::move(options)), walk_(root_fd), target_walk_(root_fd) {}

result<void> applier::apply(const tar_entry& entry, const data_source& data) {
    auto applied = apply_entry(entry, data);
    if (!applied) applied.error().message = "entry " + quote(entry.name) + ": " + applied.error().message;
    return applied;
}

result<void> applier::apply_entry(const tar_entry& entry, const data_source& data) {
    GANTRY_TRY(const auto name, parse_entry_name(entry.name));
    if (name.kind == name_kind::ignored) {
        warn(entry, "skipped: it is another builder's bookkeeping");
        return {};
    }
    GANTRY_CHECK(usage_.take_inode());
    ++summary_.inodes;
    if (name.kind == name_kind::root) return root(entry);
    if (name.kind == name_kind::opaque) return opaque(name);
    if (name.kind == name_kind::whiteout) return whiteout(name);

    GANTRY_TRY(const int parent, enter_parent(name.parent));
    const place at{entry, parent, name.base.c_str(), name.path()};
    summary_.lower_links.erase(at.path);
    switch (entry.type) {
    case entry_type::file: return file(at, data);
    case entry_type::directory: return directory(at);
    case entry_type::symlink: return symlink(at);
    case entry_type::hardlink: return hardlink(at);
    case entry_type::char_device:
    case entry_type::block_device:
    case entry_type::fifo: return node(at);
    }
    return invalid("its type is unknown");
}

result<int> applier::enter_parent(const std::string& parent) {
    GANTRY_TRY(const auto fd, walk_.enter(parent, [this](int above, const std::string& name, const std::string& path) {
        return make_implied(above, name, path);
    }));
    return fd.value();
}

result<void> applier::make_implied(int parent, const std::string& name, const std::string& path) {
    struct stat st {};
    if (::fstatat(parent, name.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0) {
        if (S_ISLNK(st.st_mode)) return invalid("its parent " + quote(path) + " is a symbolic link of the same layer");
        if (!is_whiteout(st)) return invalid("its parent " + quote(path) + " is not a directory");
        if (::unlinkat(parent, name.c_str(), 0) != 0) return failed("unlinkat " + quote(path));
    } else if (summary_.lower_links.contains(path)) {
        return invalid("its parent " + quote(path) + " is not a directory");
    }
    GANTRY_CHECK(usage_.take_inode());
    ++summary_.inodes;
    if (::mkdirat(parent, name.c_str(), 0755) != 0) return failed("mkdirat " + quote(path));
    summary_.implied.insert(path);
    if (!hidden_.contains(path)) return {};
    base::unique_fd fd(::openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!fd) return failed("openat " + quote(path));
    return mark_opaque(fd.get());
}

result<void> applier::make_room(const place& at, bool keep_directory) {
    struct stat st {};
    if (::fstatat(at.parent, at.base, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT ? result<void>{} : failed("fstatat");
    if (!S_ISDIR(st.st_mode)) {
        if (::unlinkat(at.parent, at.base, 0) != 0) return failed("unlinkat");
        return {};
    }
    if (keep_directory) return {};
    forget_below(at.path);
    return remove_at(at.parent, at.base);
}

void applier::forget_below(const std::string& path) {
    walk_.forget(path);
    target_walk_.forget(path);
    erase_below(summary_.implied, path);
    erase_below(summary_.lower_links, path);
    erase_below(directory_times_, path);
}

result<void> applier::whiteout(const entry_name& name) {
    GANTRY_TRY(const int parent, enter_parent(name.parent));
    hidden_.insert(name.path());
    struct stat st {};
    if (::fstatat(parent, name.base.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0) {
        // What this layer holds hides a lower entry by itself, but a directory would show the lower one's content.
        if (!S_ISDIR(st.st_mode)) return {};
        base::unique_fd fd(::openat(parent, name.base.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
        return fd ? mark_opaque(fd.get()) : failed("openat");
    }
    if (errno != ENOENT) return failed("fstatat");
    if (summary_.lower_links.contains(name.path())) return {}; // a file of this layer, only not here yet
    if (::mknodat(parent, name.base.c_str(), S_IFCHR, makedev(0, 0)) != 0) return failed("mknodat (whiteout)");
    return {};
}

result<void> applier::opaque(const entry_name& name) {
    GANTRY_TRY(const int dir, enter_parent(name.parent));
    if (name.parent.empty()) {
        summary_.opaque_root = true;
        return {};
    }
    hidden_.insert(name.parent);
    return mark_opaque(dir);
}

result<void> applier::mark_opaque(int dir_fd) {
    const char* name = options_.user_xattr ? "user.overlay.opaque" : "trusted.overlay.opaque";
    if (::fsetxattr(dir_fd, name, "y", 1, 0) != 0) return failed(std::string("fsetxattr ") + name);
    return {};
}

result<void> applier::root(const tar_entry& entry) {
    if (entry.type != entry_type::directory) return invalid("only a directory can be the layer's root");
    directory_times_[""] = entry.mtime;
    return describe_fd({entry, root_fd_, ".", ""}, root_fd_);
}

result<void> applier::file(const place& at, const data_source& data) {
    constexpr int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    base::unique_fd fd(::openat(at.parent, at.base, flags, 0600));
    if (!fd && errno == EEXIST) {
        GANTRY_CHECK(make_room(at, false));
        fd.reset(::openat(at.parent, at.base, flags, 0600));
    }
    if (!fd) return failed("openat");
    std::uint64_t end = 0;
    for (data_block block;;) {
        GANTRY_TRY(const bool more, data(block));
        if (!more) break;
        if (block.size > at.entry.size || block.offset > at.entry.size - block.size)
            return invalid("its data is longer than its size");
        GANTRY_CHECK(usage_.take_bytes(block.size));
        summary_.bytes += block.size;
        if (!pwrite_all(fd.get(), block.bytes, block.size, block.offset)) return failed("pwrite");
        if (block.size > 0) end = std::max(end, block.offset + block.size);
    }
    if (end != at.entry.size && ::ftruncate(fd.get(), static_cast<off_t>(at.entry.size)) != 0)
        return failed("ftruncate to " + std::to_string(at.entry.size));
    GANTRY_CHECK(describe_fd(at, fd.get()));
    const timespec times[] = {at.entry.mtime, at.entry.mtime};
    if (::futimens(fd.get(), times) != 0) return failed("futimens");
    return {};
}

result<void> applier::directory(const place& at) {
    GANTRY_CHECK(make_room(at, true));
    if (::mkdirat(at.parent, at.base, 0700) != 0 && errno != EEXIST) return failed("mkdirat");
    base::unique_fd fd(::openat(at.parent, at.base, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!fd) return failed("openat");
    summary_.implied.erase(at.path);
    directory_times_[at.path] = at.entry.mtime;
    if (hidden_.contains(at.path)) GANTRY_CHECK(mark_opaque(fd.get()));
    return describe_fd(at, fd.get());
}

result<void> applier::symlink(const place& at) {
    GANTRY_CHECK(make_room(at, false));
    if (::symlinkat(at.entry.target.c_str(), at.parent, at.base) != 0)
        return failed("symlinkat to " + quote(at.entry.target));
    return describe_path(at);
}

result<void> applier::hardlink(const place& at) {
    auto name = parse_link_target(at.entry.target);
    if (!name) return invalid("its hard link target " + quote(at.entry.target) + ": " + name.error().message);
    const auto target = name->path();
    if (name->kind == name_kind::root) return invalid("its hard link target is the root directory");
    if (target.starts_with(at.path + "/")) return invalid("its hard link target " + quote(target) + " lies below itself");
    if (const auto lower = summary_.lower_links.find(target); lower != summary_.lower_links.end()) {
        summary_.lower_links[at.path] = std::string(lower->second); // a link to a link
        return make_room(at, false);
    }
    auto dir = target_walk_.enter(name->parent);
    if (!dir) return invalid("its hard link target " + quote(at.entry.target) + ": " + dir.error().message);
    struct stat st {};
    const bool here = dir->has_value() && ::fstatat(**dir, name->base.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0;
    if (here && !S_ISREG(st.st_mode)) return invalid("its hard link target " + quote(target) + " is no regular file");
    if (here && target == at.path) return {};
    GANTRY_CHECK(make_room(at, false));
    if (!here) {
        summary_.lower_links[at.path] = target;
        return {};
    }
    if (::linkat(**dir, name->base.c_str(), at.parent, at.base, 0) != 0) return failed("linkat to " + quote(target));
    return {};
}

result<void> applier::node(const place& at) {
    const bool device = at.entry.type != entry_type::fifo;
    if (device && !options_.device_nodes) {
        warn(at.entry, "skipped: device nodes are switched off");
        return {};
    }
    if (at.entry.type == entry_type::char_device && at.entry.device == 0) {
        warn(at.entry, "skipped: character device 0:0 is overlayfs's own mark");
        return {};
    }
    GANTRY_CHECK(make_room(at, false));
    const mode_t type = !device ? S_IFIFO : at.entry.type == entry_type::char_device ? S_IFCHR : S_IFBLK;
    if (::mknodat(at.parent, at.base, type | 0600, device ? at.entry.device : 0) != 0) return failed("mknodat");
    return describe_path(at);
}

// A change of owner clears setuid bits and capabilities: owner first, then mode, then xattrs.
result<void> applier::describe_fd(const place& at, int fd) {
    if (::fchown(fd, at.entry.uid, at.entry.gid) != 0) return failed("fchown");
    if (::fchmod(fd, at.entry.mode) != 0) return failed("fchmod");
    for (const auto& [name, value] : at.entry.xattrs) {
        if (!keeps_xattr(at.entry, name)) continue;
        if (::fsetxattr(fd, name.c_str(), value.data(), value.size(), 0) == 0) continue;
        if (errno != ENOTSUP) return failed("fsetxattr " + name);
        warn(at.entry, "the file system does not keep xattr " + quote(name));
    }
    return {};
}

result<void> applier::describe_path(const place& at) {
    if (::fchownat(at.parent, at.base, at.entry.uid, at.entry.gid, AT_SYMLINK_NOFOLLOW) != 0) return failed("fchownat");
    // Not a symlink, and nobody else can put one here.
    if (at.entry.type != entry_type::symlink && ::fchmodat(at.parent, at.base, at.entry.mode, 0) != 0)
        return failed("fchmodat");
    for (const auto& [name, value] : at.entry.xattrs) {
        if (!keeps_xattr(at.entry, name)) continue;
        // There is no *at() form that every kernel has, and an O_PATH descriptor does not do.
        if (::fchdir(at.parent) != 0) return failed("fchdir");
        if (::lsetxattr(at.base, name.c_str(), value.data(), value.size(), 0) == 0) continue;
        if (errno != ENOTSUP && errno != EPERM) return failed("lsetxattr " + name);
        warn(at.entry, "xattr " + quote(name) + " cannot be set on a file of its type");
    }
    const timespec times[] = {at.entry.mtime, at.entry.mtime};
    if (::utimensat(at.parent, at.base, times, AT_SYMLINK_NOFOLLOW) != 0) return failed("utimensat");
    return {};
}

bool applier::keeps_xattr(const tar_entry& entry, const std::string& name) {
    const bool kept =
        name == "security.capability" || (name.starts_with("user.") && !name.starts_with("user.overlay."));
    if (!kept) warn(entry, "xattr " + quote(name) + " dropped");
    return kept;
}

void applier::warn(const tar_entry& entry, const std::string& what) {
    options_.warn("entry " + quote(entry.name) + ": " + what);
}

result<layer_summary> applier::finish() {
    for (const auto& [path, mtime] : directory_times_) {
        GANTRY_TRY(const auto fd, walk_.enter(path));
        const timespec times[] = {mtime, mtime};
        if (!fd || ::futimens(*fd, times) != 0) return sys_error("futimens " + quote(path), errno);
    }
    return std::move(summary_);
}

} // namespace gantry::cri_helper
