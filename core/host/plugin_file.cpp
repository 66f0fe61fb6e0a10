#include "core/host/plugin_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "base/files.hpp"
#include "base/unique_fd.hpp"
#include "core/config/suggest.hpp"
#include "core/host/sha256.hpp"

namespace gantry::core {

namespace {

constexpr std::size_t largest_library = 256u << 20;

error untrusted(const std::string& what, std::string_view remedy) {
    return {.code = code::permission, .message = what + ": " + std::string(remedy)};
}

std::string parent_of(const std::string& path) {
    const auto slash = path.rfind('/');
    return slash == 0 ? "/" : path.substr(0, slash);
}

result<void> check_owner(const struct stat& st, const std::string& what) {
    if (st.st_uid == 0 || st.st_uid == ::geteuid()) return {};
    return untrusted(what + " belongs to uid " + std::to_string(st.st_uid) + ", allowed root", "run chown root on it");
}

/// Others may neither write into the directory of a plugin nor replace a directory above it; sticky ones (/tmp) protect
/// what root made in them.
result<void> check_directories(const std::string& file) {
    bool direct = true;
    for (std::string dir = parent_of(file);; dir = parent_of(dir)) {
        struct stat st {};
        if (::lstat(dir.c_str(), &st) != 0) return sys_error("stat " + dir, errno);
        GANTRY_CHECK(check_owner(st, "directory " + dir + " of plugin " + file));
        const bool open_to_others = (st.st_mode & (S_IWGRP | S_IWOTH)) != 0;
        if (open_to_others && (direct || (st.st_mode & S_ISVTX) == 0))
            return untrusted("directory " + dir + " of plugin " + file + " is writable by group or others", "run chmod go-w on it");
        if (dir == "/") return {};
        direct = false;
    }
}

result<void> check_file(int fd, const std::string& path) {
    struct stat st {};
    if (::fstat(fd, &st) != 0) return sys_error("stat " + path, errno);
    if (!S_ISREG(st.st_mode)) return error{.code = code::invalid, .message = "plugin " + path + " is not a regular file"};
    GANTRY_CHECK(check_owner(st, "plugin " + path));
    if ((st.st_mode & (S_IWGRP | S_IWOTH)) != 0)
        return untrusted("plugin " + path + " is writable by group or others", "run chmod go-w on it");
    return {};
}

result<std::string> resolve(const std::string& path) {
    const std::unique_ptr<char, decltype(&std::free)> real(::realpath(path.c_str(), nullptr), &std::free);
    if (!real) return sys_error("plugin " + path, errno);
    return std::string(real.get());
}

} // namespace

result<plugin_file> open_plugin_file(const std::string& path) {
    GANTRY_TRY(auto real, resolve(path));
    base::unique_fd fd(::open(real.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (!fd) return sys_error("open plugin " + real, errno);
    GANTRY_CHECK(check_file(fd.get(), real));
    GANTRY_CHECK(check_directories(real));
    plugin_file file;
    GANTRY_TRY(file.bytes, private_copy::of(fd.get(), "plugin " + real, largest_library));
    GANTRY_TRY(file.plugins, read_descriptors(file.bytes.view(), real));
    file.sha256 = sha256_hex(file.bytes.view());
    file.path = std::move(real);
    return file;
}

const plugin_catalogue::entry* plugin_catalogue::find(std::string_view name) const {
    const auto found = std::find_if(entries.begin(), entries.end(), [&](const entry& e) { return e.name == name; });
    return found == entries.end() ? nullptr : &*found;
}

std::vector<std::string> plugin_catalogue::names() const {
    std::vector<std::string> names;
    for (const auto& entry : entries)
        if (std::find(names.begin(), names.end(), entry.name) == names.end()) names.push_back(entry.name);
    return names;
}

plugin_catalogue scan_plugin_dirs(const std::vector<std::string>& dirs) {
    plugin_catalogue catalogue;
    for (const auto& dir : dirs) {
        const auto names = base::list_dir(dir);
        if (!names) {
            catalogue.refused.push_back(names.error().message);
            continue;
        }
        for (const auto& name : *names) {
            if (!name.ends_with(".so")) continue;
            const auto path = dir + "/" + name;
            auto read = [&]() -> result<std::vector<plugin_note>> {
                base::unique_fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
                if (!fd) return sys_error("open " + path, errno);
                GANTRY_TRY(const auto bytes, private_copy::of(fd.get(), path, largest_library));
                return read_plugin_notes(bytes.view(), path);
            }();
            if (!read) {
                catalogue.refused.push_back(read.error().message);
                continue;
            }
            // Only the name counts here; whether the plugin can be loaded is said when a configuration wants it.
            for (const auto& note : *read) {
                const auto document = base::parse_json(note.json, path);
                const auto* members = document ? document->if_object() : nullptr;
                const auto* own = members ? members->if_contains("name") : nullptr;
                if (own && own->is_string()) catalogue.entries.push_back({path, std::string(own->get_string())});
                else catalogue.refused.push_back(path + ": its descriptor has no name");
            }
        }
    }
    return catalogue;
}

result<std::string> install_verified(const plugin_file& file, const std::string& id, const std::string& dir) {
    const std::string path = dir + "/" + id + "-" + file.sha256 + ".so";
    GANTRY_CHECK(base::write_file_atomic(path, file.bytes.view(), 0555));
    return path;
}

void remove_other_copies(const std::string& dir, const std::vector<std::string>& keep) {
    const auto names = base::list_dir(dir);
    if (!names) return;
    for (const auto& name : *names) {
        const auto path = dir + "/" + name;
        if (std::find(keep.begin(), keep.end(), path) == keep.end()) ::unlink(path.c_str());
    }
}

result<std::string> choose_library_dir(const std::vector<std::string>& dirs) {
    for (const auto& dir : dirs) {
        GANTRY_CHECK(base::make_dirs(dir, 0700));
        struct statvfs st {};
        if (::statvfs(dir.c_str(), &st) != 0) return sys_error("statvfs " + dir, errno);
        if ((st.f_flag & ST_NOEXEC) == 0) return dir;
    }
    return error{.code = code::permission,
                 .message = "plugins cannot be mapped from " + join(dirs) +
                            ": both filesystems are mounted noexec, set node.runDir or node.stateDir to one that is not"};
}

} // namespace gantry::core
