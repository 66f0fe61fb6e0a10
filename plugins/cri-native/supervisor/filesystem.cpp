#include "plugins/cri-native/supervisor/filesystem.hpp"

#include <sys/stat.h>
#include <sys/statvfs.h>

#include "plugins/cri-native/supervisor/target.hpp"

namespace gantry::cri_native::supervisor {

namespace wire = launch::wire;

namespace {

struct flag_pair {
    std::uint64_t attribute;
    unsigned long mount_flag;
    unsigned long statvfs_flag;
};

constexpr flag_pair flag_pairs[] = {
    {MOUNT_ATTR_RDONLY, MS_RDONLY, ST_RDONLY},
    {MOUNT_ATTR_NOSUID, MS_NOSUID, ST_NOSUID},
    {MOUNT_ATTR_NODEV, MS_NODEV, ST_NODEV},
    {MOUNT_ATTR_NOEXEC, MS_NOEXEC, ST_NOEXEC},
    {MOUNT_ATTR_NODIRATIME, MS_NODIRATIME, ST_NODIRATIME},
};

unsigned long legacy_flags(std::uint64_t attributes) noexcept {
    unsigned long flags = 0;
    for (const auto& pair : flag_pairs)
        if (attributes & pair.attribute) flags |= pair.mount_flag;
    return flags;
}

int reopen_top(const spot& where) noexcept { return open_target(where.root, where.path, {}); }

} // namespace

line<40> fd_path(int fd) noexcept {
    line<40> path;
    path.add("/proc/self/fd/").number(static_cast<unsigned>(fd));
    return path;
}

new_filesystem::new_filesystem(const char* type, api which) noexcept
    : type_(type), legacy_api_(which == api::mount2 || !sys::has(wire::feature_mount_api)) {
    if (legacy_api_) return;
    context_.reset(sys::fsopen(type));
    if (!context_) error_ = errno;
}

void new_filesystem::option(text option) noexcept {
    if (legacy_api_) {
        if (legacy_.size() != 0) legacy_.add(",");
        legacy_.add(option);
        return;
    }
    if (error_ != 0) return;
    line<64> key;
    std::size_t n = 0;
    while (n < option.size && option.data[n] != '=') ++n;
    key.add(option.data, n);
    const bool has_value = n < option.size;
    if (sys::fsconfig(context_.get(), has_value ? FSCONFIG_SET_STRING : FSCONFIG_SET_FLAG, key.c_str(),
                      has_value ? option.data + n + 1 : nullptr) != 0) {
        error_ = errno;
        read_detail();
        if (detail_.size() == 0) detail_.add("option ").add(option);
    }
}

void new_filesystem::option(const char* key_value) noexcept {
    option(text{key_value, static_cast<std::uint32_t>(std::strlen(key_value))});
}

void new_filesystem::read_detail() noexcept {
    char message[256];
    ssize_t n = 0;
    while ((n = ::read(context_.get(), message, sizeof message)) > 0) {
        if (message[n - 1] == '\n') --n;
        if (detail_.size() != 0) detail_.add("; ");
        detail_.add(message, static_cast<std::size_t>(n));
    }
}

int new_filesystem::mount_on(const spot& where, std::uint64_t attributes) noexcept {
    if (legacy_api_) {
        if (legacy_.truncated()) {
            errno = E2BIG;
            return -1;
        }
        if (::mount(type_, fd_path(where.fd).c_str(), type_, legacy_flags(attributes), legacy_.c_str()) != 0) return -1;
        return reopen_top(where);
    }
    if (error_ == 0 && sys::fsconfig(context_.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr) != 0) {
        error_ = errno;
        read_detail();
    }
    if (error_ != 0) {
        errno = error_;
        return -1;
    }
    sys::fd mounted(sys::fsmount(context_.get(), static_cast<unsigned>(attributes)));
    if (!mounted) return -1;
    if (sys::move_mount(mounted.get(), "", where.fd, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) != 0)
        return -1;
    return mounted.release();
}

int take_tree(const char* path, bool recursive) noexcept {
    if (!sys::has(wire::feature_mount_api)) return ::open(path, O_PATH | O_CLOEXEC);
    return sys::open_tree(AT_FDCWD, path,
                          OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | (recursive ? unsigned{AT_RECURSIVE} : 0u));
}

int take_tree(int fd, bool recursive) noexcept {
    if (!sys::has(wire::feature_mount_api)) return ::fcntl(fd, F_DUPFD_CLOEXEC, 0);
    return sys::open_tree(
        fd, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH | (recursive ? unsigned{AT_RECURSIVE} : 0u));
}

int bind_on(int tree, const spot& where, bool recursive) noexcept {
    if (!sys::has(wire::feature_mount_api)) {
        if (::mount(fd_path(tree).c_str(), fd_path(where.fd).c_str(), nullptr,
                    MS_BIND | (recursive ? static_cast<unsigned long>(MS_REC) : 0ul), nullptr) != 0)
            return -1;
        return reopen_top(where);
    }
    if (sys::move_mount(tree, "", where.fd, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) != 0) return -1;
    return ::fcntl(tree, F_DUPFD_CLOEXEC, 0);
}

bool add_attributes(int mount_root, std::uint64_t attributes, bool recursive) noexcept {
    if (attributes == 0) return true;
    if (sys::has(wire::feature_mount_setattr)) {
        mount_attr attr{};
        attr.attr_set = attributes;
        return sys::set_mount_attributes(mount_root, "", AT_EMPTY_PATH | (recursive ? unsigned{AT_RECURSIVE} : 0u),
                                         &attr) == 0;
    }
    if (recursive) {
        errno = ENOSYS;
        return false;
    }
    struct statvfs now {};
    if (::fstatvfs(mount_root, &now) != 0) return false;
    unsigned long flags = MS_REMOUNT | MS_BIND | legacy_flags(attributes);
    for (const auto& pair : flag_pairs)
        if (now.f_flag & pair.statvfs_flag) flags |= pair.mount_flag;
    if (now.f_flag & ST_NOATIME) flags |= MS_NOATIME;
    if (now.f_flag & ST_RELATIME) flags |= MS_RELATIME;
    return ::mount(nullptr, fd_path(mount_root).c_str(), nullptr, flags, nullptr) == 0;
}

bool set_propagation(int mount_root, unsigned long propagation) noexcept {
    if (sys::has(wire::feature_mount_setattr)) {
        mount_attr attr{};
        attr.propagation = propagation;
        return sys::set_mount_attributes(mount_root, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr) == 0;
    }
    return ::mount(nullptr, fd_path(mount_root).c_str(), nullptr, propagation | MS_REC, nullptr) == 0;
}

} // namespace gantry::cri_native::supervisor
