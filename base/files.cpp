#include "base/files.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <memory>

namespace gantry::base {

namespace {

std::string parent_of(const std::string& path) {
    const auto slash = path.rfind('/');
    if (slash == std::string::npos) return ".";
    return slash == 0 ? "/" : path.substr(0, slash);
}

struct dir_closer {
    void operator()(DIR* dir) const noexcept { ::closedir(dir); }
};
using dir_handle = std::unique_ptr<DIR, dir_closer>;

result<void> write_all(int fd, std::string_view bytes, const std::string& path) {
    while (!bytes.empty()) {
        const ssize_t n = ::write(fd, bytes.data(), bytes.size());
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return sys_error("write " + path, errno);
        bytes.remove_prefix(static_cast<std::size_t>(n));
    }
    return {};
}

result<std::vector<std::string>> names_in(int dir_fd, const std::string& path) {
    dir_handle dir(::fdopendir(dir_fd));
    if (!dir) return sys_error("fdopendir " + path, errno);
    std::vector<std::string> names;
    while (const dirent* entry = ::readdir(dir.get())) {
        const std::string_view name = entry->d_name;
        if (name != "." && name != "..") names.emplace_back(name);
    }
    std::sort(names.begin(), names.end());
    return names;
}

result<void> remove_at(int parent, const std::string& name, const std::string& path, dev_t device) {
    if (::unlinkat(parent, name.c_str(), 0) == 0 || errno == ENOENT) return {};
    if (errno != EISDIR && errno != EPERM) return sys_error("unlink " + path, errno);
    unique_fd dir(::openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!dir) return errno == ENOENT ? result<void>{} : sys_error("open " + path, errno);
    struct stat st {};
    if (::fstat(dir.get(), &st) != 0) return sys_error("stat " + path, errno);
    if (st.st_dev != device) return sys_error("remove " + path + " (a mount)", EBUSY);
    const int copy = ::fcntl(dir.get(), F_DUPFD_CLOEXEC, 0);
    if (copy < 0) return sys_error("dup " + path, errno);
    GANTRY_TRY(const auto names, names_in(copy, path));
    for (const auto& child : names) GANTRY_CHECK(remove_at(dir.get(), child, path + "/" + child, device));
    if (::unlinkat(parent, name.c_str(), AT_REMOVEDIR) != 0 && errno != ENOENT) return sys_error("rmdir " + path, errno);
    return {};
}

} // namespace

result<std::string> read_file(const std::string& path, std::size_t limit) {
    unique_fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd) return sys_error("open " + path, errno);
    std::string bytes;
    struct stat st {};
    if (::fstat(fd.get(), &st) == 0 && S_ISREG(st.st_mode)) bytes.reserve(std::min<std::size_t>(st.st_size, limit) + 1);
    char buffer[16384];
    for (;;) {
        const ssize_t n = ::read(fd.get(), buffer, sizeof buffer);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return sys_error("read " + path, errno);
        if (n == 0) return bytes;
        bytes.append(buffer, static_cast<std::size_t>(n));
        if (bytes.size() > limit)
            return error{.code = code::resource, .message = path + " is larger than " + std::to_string(limit) + " bytes"};
    }
}

result<void> write_file_atomic(const std::string& path, std::string_view bytes, mode_t mode, bool durable) {
    const std::string tmp = path + ".tmp";
    ::unlink(tmp.c_str());
    unique_fd fd(::open(tmp.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode));
    if (!fd) return sys_error("create " + tmp, errno);
    auto written = write_all(fd.get(), bytes, tmp);
    if (written && durable && ::fsync(fd.get()) != 0) written = sys_error("fsync " + tmp, errno);
    if (written && ::rename(tmp.c_str(), path.c_str()) != 0) written = sys_error("rename " + tmp, errno);
    if (!written) {
        ::unlink(tmp.c_str());
        return written;
    }
    if (durable) {
        const std::string parent = parent_of(path);
        unique_fd dir(::open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        if (!dir || ::fsync(dir.get()) != 0) return sys_error("fsync " + parent, errno);
    }
    return {};
}

result<void> make_dirs(const std::string& path, mode_t mode) {
    if (::mkdir(path.c_str(), mode) == 0) return {};
    if (errno == EEXIST) {
        struct stat st {};
        if (::stat(path.c_str(), &st) == 0 && S_ISDIR(st.st_mode)) return {};
        return sys_error("mkdir " + path, ENOTDIR);
    }
    if (errno != ENOENT) return sys_error("mkdir " + path, errno);
    GANTRY_CHECK(make_dirs(parent_of(path), mode));
    if (::mkdir(path.c_str(), mode) != 0 && errno != EEXIST) return sys_error("mkdir " + path, errno);
    return {};
}

result<std::vector<std::string>> list_dir(const std::string& path) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT) return std::vector<std::string>{};
    if (fd < 0) return sys_error("open " + path, errno);
    return names_in(fd, path);
}

result<void> remove_tree(const std::string& path) {
    struct stat st {};
    const std::string parent = parent_of(path);
    unique_fd dir(::open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!dir) return errno == ENOENT ? result<void>{} : sys_error("open " + parent, errno);
    if (::fstat(dir.get(), &st) != 0) return sys_error("stat " + parent, errno);
    return remove_at(dir.get(), path.substr(path.rfind('/') + 1), path, st.st_dev);
}

} // namespace gantry::base
