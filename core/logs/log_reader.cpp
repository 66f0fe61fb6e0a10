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

/// Rotated files oldest first, then the live one.
result<std::vector<std::string>> files_of(const read_options& options) {
    const std::string live = std::to_string(options.attempt) + ".log";
    GANTRY_TRY(const auto names, base::list_dir(options.directory));
    std::vector<std::string> files;
    for (const auto& name : names)
        if (name.starts_with(live + ".") && !name.ends_with(".gz") && !name.ends_with(".tmp"))
            files.push_back(options.directory + "/" + name);
    if (std::find(names.begin(), names.end(), live) != names.end()) files.push_back(options.directory + "/" + live);
    return files;
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
    result<void> open(const std::string& path) {
        base::unique_fd next(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
        if (!next) return sys_error("open " + path, errno);
        fd_ = std::move(next);
        pending_.clear();
        return {};
    }
    int fd() const { return fd_.get(); }
    void seek(off_t offset) { ::lseek(fd_.get(), offset, SEEK_SET); }
    bool is(const std::string& path) const {
        struct stat mine {}, there {};
        return ::fstat(fd_.get(), &mine) == 0 && ::stat(path.c_str(), &there) == 0 && mine.st_ino == there.st_ino &&
               mine.st_dev == there.st_dev;
    }

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
    std::string pending_; // an unfinished record at the end of what was read
};

/// The file that follows the cursor's: several rotations may have passed since it was opened. Empty if there is none yet.
result<std::string> file_after(const file_cursor& cursor, const read_options& options) {
    GANTRY_TRY(const auto files, files_of(options));
    const auto mine = std::find_if(files.begin(), files.end(), [&](const auto& path) { return cursor.is(path); });
    if (mine == files.end()) return files.empty() ? std::string{} : files.front(); // ours was removed: the oldest kept
    return mine + 1 == files.end() ? std::string{} : *(mine + 1);
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
    GANTRY_TRY(const auto files, files_of(options));
    if (files.empty())
        return error{.code = code::not_found, .message = "no log " + options.directory + "/" +
                                                         std::to_string(options.attempt) + ".log: the container wrote none yet"};

    // With tail, whole files at the front are left out and the first one read starts in the middle.
    std::size_t first = 0;
    off_t offset = 0;
    if (options.tail >= 0) {
        long lines = options.tail;
        for (first = files.size(); first > 0 && lines >= 0;) {
            file_cursor cursor;
            GANTRY_CHECK(cursor.open(files[--first]));
            GANTRY_TRY(offset, tail_offset(cursor.fd(), lines));
            if (offset > 0 || lines == 0) break;
        }
    }

    formatter format(options);
    file_cursor cursor;
    for (std::size_t i = first; i < files.size(); ++i) {
        GANTRY_CHECK(cursor.open(files[i]));
        if (i == first) cursor.seek(offset);
        GANTRY_TRY(const bool more, cursor.drain(format, sink));
        if (!more) return {};
    }
    if (!options.follow) return {};
    const std::string live = options.directory + "/" + std::to_string(options.attempt) + ".log";
    for (;;) {
        // Asked before draining: what was written before the end is then certainly read.
        const bool last_round = ended();
        GANTRY_TRY(const bool more, cursor.drain(format, sink));
        if (!more) return {};
        if (!cursor.is(live)) {
            GANTRY_TRY(const bool rest, cursor.drain(format, sink));
            if (!rest) return {};
            GANTRY_TRY(const auto next, file_after(cursor, options));
            if (!next.empty()) {
                GANTRY_CHECK(cursor.open(next));
                continue;
            }
        }
        if (last_round) return {};
        wait_for_change(inotify.get(), wake_fd);
    }
}

} // namespace gantry::core::logs
