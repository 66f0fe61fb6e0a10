#include "plugins/cri-native/runtime/rootfs/disk_usage.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <memory>
#include <string_view>

#include "base/unique_fd.hpp"

namespace gantry::cri_native {

namespace {

struct dir_closer {
    void operator()(DIR* dir) const noexcept { ::closedir(dir); }
};

/// Containers change their trees meanwhile: what cannot be read any more counts as gone.
void add_tree(int parent, const char* name, dev_t device, disk_usage& sum) {
    base::unique_fd fd(::openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!fd) return;
    const std::unique_ptr<DIR, dir_closer> dir(::fdopendir(fd.get()));
    if (!dir) return;
    const int here = fd.release(); // closedir closes it
    while (const dirent* entry = ::readdir(dir.get())) {
        const std::string_view child = entry->d_name;
        struct stat st {};
        if (child == "." || child == ".." || ::fstatat(here, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0) continue;
        if (st.st_dev != device) continue;
        sum.bytes += static_cast<std::uint64_t>(st.st_blocks) * 512;
        ++sum.inodes;
        if (S_ISDIR(st.st_mode)) add_tree(here, entry->d_name, device, sum);
    }
}

constexpr auto shortest_validity = std::chrono::seconds(10);

} // namespace

disk_usage measure_tree(const std::string& dir) {
    disk_usage sum;
    struct stat st {};
    if (::lstat(dir.c_str(), &st) != 0 || !S_ISDIR(st.st_mode)) return sum;
    sum.bytes = static_cast<std::uint64_t>(st.st_blocks) * 512;
    sum.inodes = 1;
    add_tree(AT_FDCWD, dir.c_str(), st.st_dev, sum);
    return sum;
}

disk_usage disk_usage_cache::of(const std::string& dir) {
    const auto before = clock::now();
    {
        const std::lock_guard lock(mutex_);
        const auto found = entries_.find(dir);
        if (found != entries_.end() && found->second.valid_until > before) return found->second.usage;
    }
    const auto usage = measure_tree(dir);
    const auto after = clock::now();
    const auto validity = std::max<clock::duration>(shortest_validity, (after - before) * 100);
    const std::lock_guard lock(mutex_);
    entries_[dir] = {.usage = usage, .valid_until = after + validity};
    return usage;
}

void disk_usage_cache::forget(const std::string& dir) {
    const std::lock_guard lock(mutex_);
    entries_.erase(dir);
}

} // namespace gantry::cri_native
