#include "plugins/source-file/folder.hpp"

#include <sys/inotify.h>
#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "base/files.hpp"

namespace gantry::source_file {

namespace {

constexpr std::uint32_t watched =
    IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_CREATE | IN_DELETE | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR;

/// A file that came into being complete: a symbolic or a further hard link.
bool is_link(const std::string& path) {
    struct stat st {};
    return ::lstat(path.c_str(), &st) == 0 && (S_ISLNK(st.st_mode) || (S_ISREG(st.st_mode) && st.st_nlink > 1));
}

} // namespace

bool is_manifest_name(std::string_view name) {
    if (name.empty() || name.starts_with('.') || name.ends_with('~')) return false;
    if (name.starts_with('#') && name.ends_with('#')) return false;
    return !name.ends_with(".swp") && !name.ends_with(".swx") && !name.ends_with(".tmp");
}

result<entry> stat_entry(const std::string& path) {
    struct stat st {};
    if (::stat(path.c_str(), &st) != 0) return sys_error("stat " + path, errno);
    if (!S_ISREG(st.st_mode)) return error{.code = code::invalid, .message = path + " is no regular file"};
    return entry{path, {st.st_ino, st.st_size, st.st_mtim.tv_sec * 1'000'000'000LL + st.st_mtim.tv_nsec}};
}

result<folder> folder::open(const std::string& path) {
    struct stat st {};
    if (::stat(path.c_str(), &st) != 0) return sys_error("stat " + path, errno);
    const bool single = !S_ISDIR(st.st_mode);
    const auto slash = path.rfind('/');
    std::string directory = single ? path.substr(0, std::max<std::size_t>(slash, 1)) : path;
    base::unique_fd inotify(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
    if (!inotify) return sys_error("inotify_init (is fs.inotify.max_user_instances too low?)", errno);
    if (::inotify_add_watch(inotify.get(), directory.c_str(), watched) < 0)
        return sys_error("watch " + directory, errno);
    return folder(std::move(directory), single ? path.substr(slash + 1) : std::string(), std::move(inotify));
}

result<std::vector<entry>> folder::list() const {
    std::vector<std::string> names{only_};
    if (only_.empty()) {
        struct stat st {};
        if (::stat(directory_.c_str(), &st) != 0) return sys_error("stat " + directory_, errno);
        GANTRY_TRY(names, base::list_dir(directory_));
    }
    std::vector<entry> entries;
    for (const auto& name : names) {
        if (!wanted(name)) continue;
        if (auto found = stat_entry(directory_ + "/" + name)) entries.push_back(*std::move(found));
    }
    return entries;
}

std::vector<folder_event> folder::read() {
    std::vector<folder_event> out;
    std::uint32_t last_move = 0; // cookie of the move that out.back() began
    alignas(inotify_event) char buffer[65536];
    for (;;) {
        const ssize_t size = ::read(inotify_.get(), buffer, sizeof buffer);
        if (size <= 0) return out; // EAGAIN: that was all
        for (const char* at = buffer; at < buffer + size;) {
            const auto* event = reinterpret_cast<const inotify_event*>(at);
            at += sizeof(inotify_event) + event->len;
            auto read = interpret(event->mask, event->len > 0 ? event->name : "");
            const auto cookie = std::exchange(last_move, 0);
            if (!read) continue;
            if (read->what == folder_event::kind::written && cookie != 0 && cookie == event->cookie) {
                out.back() = {folder_event::kind::renamed, read->path, out.back().path};
                continue;
            }
            if (read->what == folder_event::kind::moved_away) last_move = event->cookie;
            out.push_back(*std::move(read));
        }
    }
}

std::optional<folder_event> folder::interpret(std::uint32_t mask, std::string_view name) const {
    using kind = folder_event::kind;
    if (mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_IGNORED | IN_UNMOUNT)) return folder_event{kind::lost};
    if (mask & IN_Q_OVERFLOW) return folder_event{kind::relist};
    // A mounted ConfigMap: every link has another target now.
    if (name == "..data" && (mask & IN_MOVED_TO)) return folder_event{kind::relist};
    if ((mask & IN_ISDIR) || !wanted(name)) return std::nullopt;
    const std::string path = directory_ + "/" + std::string(name);
    if (mask & (IN_CLOSE_WRITE | IN_MOVED_TO)) return folder_event{kind::written, path};
    if (mask & IN_DELETE) return folder_event{kind::deleted, path};
    if (mask & IN_MOVED_FROM) return folder_event{kind::moved_away, path};
    return is_link(path) ? std::optional(folder_event{kind::written, path}) : std::nullopt;
}

} // namespace gantry::source_file
