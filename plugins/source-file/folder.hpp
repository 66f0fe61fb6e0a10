// A directory, or one file, under inotify.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.hpp"
#include "gantry/sdk/result.hpp"

namespace gantry::source_file {

/// False for names that no kubelet reads (a leading dot) and for what editors and copying programs leave beside a file:
/// `x~`, `#x#`, `x.swp`, `x.swx`, `x.tmp`. Pure.
bool is_manifest_name(std::string_view name);

/// What tells one content of a file from the next without reading it.
struct signature {
    ino_t inode = 0;
    off_t size = 0;
    std::int64_t mtime_ns = 0;
    bool operator==(const signature&) const = default;
};

struct entry {
    std::string path;
    source_file::signature signature;
};

struct folder_event {
    enum class kind {
        written, ///< complete: closed after writing, moved or linked here
        deleted,
        renamed,    ///< a complete file, from `from` to `path`
        moved_away, ///< perhaps an editor that puts a new file in its place
        relist,     ///< events were lost, or many files changed at once
        lost,       ///< the directory itself went; open again
    };
    kind what;
    std::string path{}; ///< of the first four
    std::string from{};
};

/// Not thread-safe.
class folder {
public:
    /// path: a directory (not recursive), or a single file. Watches before anything is listed. [worker]
    static result<folder> open(const std::string& path);

    int fd() const { return inotify_.get(); }
    /// The regular files (symlinks followed), ordered by path. [worker]
    result<std::vector<entry>> list() const;
    /// What happened since the last call; does not block.
    std::vector<folder_event> read();

private:
    folder(std::string directory, std::string only, base::unique_fd inotify)
        : directory_(std::move(directory)), only_(std::move(only)), inotify_(std::move(inotify)) {}
    std::optional<folder_event> interpret(std::uint32_t mask, std::string_view name) const;
    bool wanted(std::string_view name) const { return only_.empty() ? is_manifest_name(name) : name == only_; }

    std::string directory_;
    std::string only_; ///< name of the one file, or empty
    base::unique_fd inotify_;
};

/// The entry of a path if it is a regular file; never blocks on what is none.
result<entry> stat_entry(const std::string& path);

} // namespace gantry::source_file
