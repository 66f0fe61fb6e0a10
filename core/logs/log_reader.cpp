#include "core/logs/log_reader.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "base/files.hpp"
#include "base/unique_fd.hpp"
#include "core/logs/cri_line.hpp"

namespace gantry::core::logs {

namespace {

constexpr std::size_t block = 64 * 1024;
constexpr int recheck_ms = 1000; // inotify tells of everything; this is the net below it

struct log_file {
    std::string path;
    ino_t inode = 0;
};

/// Names of the run's files: rotated ones oldest first, then the live one.
result<std::vector<std::string>> names_of(const read_options& options) {
    const std::string live = std::to_string(options.attempt) + ".log";
    GANTRY_TRY(const auto all, base::list_dir(options.directory));
    std::vector<std::string> names;
    for (const auto& name : all)
        if (name.starts_with(live + ".") && !name.ends_with(".gz") && !name.ends_with(".tmp")) names.push_back(name);
    if (std::find(all.begin(), all.end(), live) != all.end()) names.push_back(live);
    return names;
}

/// Rotated files oldest first, then the live one. A rotation changes the names: names that are the same before and after
/// the inodes were read belong to those inodes.
result<std::vector<log_file>> files_of(const read_options& options) {
    GANTRY_TRY(auto names, names_of(options));
    for (;;) {
        std::vector<log_file> files;
        for (const auto& name : names) {
            struct stat st {};
            const std::string path = options.directory + "/" + name;
            if (::stat(path.c_str(), &st) == 0) files.push_back({path, st.st_ino});
        }
        GANTRY_TRY(auto again, names_of(options));
        if (again == names) return files;
        names = std::move(again);
    }
}

/// Turns records into output: joins partial ones, filters by time, prefixes times.
class formatter {
public:
    explicit formatter(const read_options& options) : options_(options) {}

    /// One record without its line feed, appended to out.
    void record(std::string_view text, std::string& out) {
        const auto line = parse_cri_line(text);
        if (!line) return;
        if (!options_.since.empty() && is_before(line->time, options_.since)) return;
        bool& inside = inside_line_[line->stream == "stderr"];
        if (options_.timestamps && !inside) out.append(line->time).append(" ");
        out.append(line->payload);
        if (!line->partial) out += '\n';
        inside = line->partial;
    }

private:
    const read_options& options_;
    bool inside_line_[2] = {false, false};
};

/// Where to start so that `lines` full lines remain; lines left over for older files in `lines`.
result<off_t> tail_offset(int fd, long& lines) {
    off_t end = ::lseek(fd, 0, SEEK_END);
    if (end < 0) return sys_error("seek in a log", errno);
    std::string tail;
    off_t start = end;
    // Grows backwards block by block until enough full records are inside.
    while (true) {
        long full = 0;
        std::size_t keep_from = 0;
        bool enough = false;
        for (std::size_t stop = tail.size(); stop > 0 && !enough;) {
            const auto feed = stop >= 2 ? tail.rfind('\n', stop - 2) : std::string::npos;
            if (feed == std::string::npos && start > 0) break; // the record begins before what was read
            const std::size_t begin = feed == std::string::npos ? 0 : feed + 1;
            const auto line = parse_cri_line(std::string_view(tail).substr(begin, stop - begin - 1));
            if (line && !line->partial && ++full > lines) {
                keep_from = stop;
                enough = true;
            }
            stop = begin;
        }
        if (enough) {
            lines = 0;
            return start + static_cast<off_t>(keep_from);
        }
        if (start == 0) {
            lines -= full;
            return off_t{0};
        }
        const off_t step = std::min<off_t>(start, block);
        std::string more(static_cast<std::size_t>(step), '\0');
        const ssize_t n = ::pread(fd, more.data(), more.size(), start - step);
        if (n != step) return sys_error("read a log", n < 0 ? errno : EIO);
        tail = more + tail;
        start -= step;
    }
}

/// One open log file being read forward.
class file_cursor {
public:
    /// False if the path no longer names that file: it was rotated since it was listed.
    result<bool> open(const log_file& file) {
        base::unique_fd next(::open(file.path.c_str(), O_RDONLY | O_CLOEXEC));
        struct stat st {};
        if (!next && errno == ENOENT) return false;
        if (!next || ::fstat(next.get(), &st) != 0) return sys_error("open " + file.path, errno);
        if (st.st_ino != file.inode) return false;
        fd_ = std::move(next);
        inode_ = file.inode;
        pending_.clear();
        return true;
    }
    int fd() const { return fd_.get(); }
    ino_t inode() const { return inode_; }
    void seek(off_t offset) { ::lseek(fd_.get(), offset, SEEK_SET); }

    /// Reads to the present end; false when the sink wants no more.
    result<bool> drain(formatter& format, const std::function<bool(std::string_view)>& sink) {
        std::vector<char> buffer(block);
        for (;;) {
            const ssize_t n = ::read(fd_.get(), buffer.data(), buffer.size());
            if (n < 0 && errno == EINTR) continue;
            if (n < 0) return sys_error("read a log", errno);
            if (n == 0) return true;
            pending_.append(buffer.data(), static_cast<std::size_t>(n));
            std::string out;
            std::size_t used = 0;
            for (std::size_t feed; (feed = pending_.find('\n', used)) != std::string::npos; used = feed + 1)
                format.record(std::string_view(pending_).substr(used, feed - used), out);
            pending_.erase(0, used);
            if (!out.empty() && !sink(out)) return false;
        }
    }

private:
    base::unique_fd fd_;
    ino_t inode_ = 0;
    std::string pending_; // an unfinished record at the end of what was read
};

/// Opens the first file to read, at the place that leaves `tail` lines.
result<void> open_first(const read_options& options, file_cursor& cursor) {
    for (;;) {
        GANTRY_TRY(const auto files, files_of(options));
        if (files.empty())
            return error{.code = code::not_found,
                         .message = "no log " + options.directory + "/" + std::to_string(options.attempt) +
                                    ".log: the container has written none"};
        if (options.tail < 0) {
            GANTRY_TRY(const bool opened, cursor.open(files.front()));
            if (opened) return {};
            continue;
        }
        long lines = options.tail;
        bool rotated = false;
        for (auto file = files.rbegin(); file != files.rend() && !rotated; ++file) {
            GANTRY_TRY(const bool opened, cursor.open(*file));
            rotated = !opened;
            if (rotated) break;
            GANTRY_TRY(const off_t offset, tail_offset(cursor.fd(), lines));
            cursor.seek(offset);
            if (offset > 0 || lines == 0) return {};
        }
        if (!rotated) return {};
    }
}

/// The file after the cursor's own, if there is one; several rotations may have passed since that was opened.
result<std::optional<log_file>> successor(const read_options& options, const file_cursor& cursor) {
    GANTRY_TRY(const auto files, files_of(options));
    const auto mine = std::find_if(files.begin(), files.end(), [&](const auto& f) { return f.inode == cursor.inode(); });
    const auto next = mine == files.end() ? files.begin() : mine + 1; // ours was removed: the oldest that is kept
    return next == files.end() ? std::optional<log_file>{} : std::optional<log_file>(*next);
}

void wait_for_change(int inotify, int wake_fd) {
    pollfd polled[2] = {{inotify, POLLIN, 0}, {wake_fd, POLLIN, 0}};
    ::poll(polled, 2, recheck_ms);
    char events[4096];
    while (::read(inotify, events, sizeof events) > 0) {}
}

} // namespace

result<void> read_log(const read_options& options, int wake_fd, const std::function<bool()>& ended,
                      const std::function<bool(std::string_view)>& sink) {
    base::unique_fd inotify;
    if (options.follow) {
        inotify.reset(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
        if (!inotify) return sys_error("inotify_init", errno);
        if (::inotify_add_watch(inotify.get(), options.directory.c_str(), IN_MODIFY | IN_CREATE | IN_MOVED_TO) < 0)
            return sys_error("watch " + options.directory, errno);
    }
    formatter format(options);
    file_cursor cursor;
    GANTRY_CHECK(open_first(options, cursor));
    for (;;) {
        // Asked before draining: what was written before the end is then certainly read.
        const bool last_round = !options.follow || ended();
        GANTRY_TRY(const bool more, cursor.drain(format, sink));
        if (!more) return {};
        GANTRY_TRY(const auto next, successor(options, cursor));
        if (next) {
            // A file with a successor gets no more writes; what came between draining and now is its rest.
            GANTRY_TRY(const bool rest, cursor.drain(format, sink));
            if (!rest) return {};
            GANTRY_TRY([[maybe_unused]] const bool moved, cursor.open(*next));
            continue;
        }
        if (last_round) return {};
        wait_for_change(inotify.get(), wake_fd);
    }
}

} // namespace gantry::core::logs
