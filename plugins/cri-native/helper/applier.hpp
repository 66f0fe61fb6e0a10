// Applies the entries of one layer to one directory, as overlayfs expects a lower layer (image-spec layer.md; kernel
// Documentation/filesystems/overlayfs.rst). The entries are hostile: nothing outside the directory is ever touched, and
// nothing is written through a symlink.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <ctime>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gantry/sdk/result.hpp"
#include "plugins/cri-native/helper/budget.hpp"
#include "plugins/cri-native/helper/dir_walk.hpp"
#include "plugins/cri-native/helper/entry_name.hpp"

namespace gantry::cri_helper {

enum class entry_type { file, directory, symlink, hardlink, char_device, block_device, fifo };

struct tar_entry {
    std::string name;
    entry_type type = entry_type::file;
    mode_t mode = 0644; ///< permission bits, setuid, setgid, sticky
    std::uint32_t uid = 0;
    std::uint32_t gid = 0;
    timespec mtime{};
    dev_t device = 0;
    std::string target;     ///< of a symlink or hard link
    std::uint64_t size = 0; ///< of a file, holes included
    std::vector<std::pair<std::string, std::string>> xattrs;
};

/// A run of a file's bytes; what no block covers is a hole.
struct data_block {
    std::uint64_t offset = 0;
    const char* bytes = nullptr;
    std::size_t size = 0;
};

/// Fetches the next block; false at the end.
using data_source = std::function<result<bool>(data_block&)>;

struct apply_options {
    bool user_xattr = false;  ///< overlay marks as user.overlay.* (in a user namespace)
    bool device_nodes = true; ///< false: skip them with a warning
    std::function<void(const std::string&)> warn = [](const std::string&) {};
};

/// What a layer leaves for settle(), which knows the layers below.
struct layer_summary {
    std::uint64_t bytes = 0;
    std::uint64_t inodes = 0;
    bool opaque_root = false;                       ///< hides every layer below
    std::map<std::string, std::string> lower_links; ///< link -> target that this layer does not hold
    std::set<std::string> implied;                  ///< directories that no entry described: 0755 root

    /// True if the directory is right whatever lies below it.
    bool self_contained() const { return lower_links.empty() && implied.empty(); }
};

class applier {
public:
    /// root_fd: borrowed. usage: what all layers of a load share.
    applier(int root_fd, budget& usage, apply_options options);

    /// Errors name the entry and the system call. After an error the layer is worthless.
    result<void> apply(const tar_entry& entry, const data_source& data);

    /// Sets what must come last (directories' times). Call once, after the last entry.
    result<layer_summary> finish();

private:
    struct place; // where an entry goes: parent fd, base name, path, and the entry for messages

    result<void> apply_entry(const tar_entry& entry, const data_source& data);
    result<int> enter_parent(const std::string& parent);
    result<void> make_implied(int parent, const std::string& name, const std::string& path);
    result<void> make_room(const place& at, bool keep_directory);
    void forget_below(const std::string& path);

    result<void> whiteout(const entry_name& name);
    result<void> opaque(const entry_name& name);
    result<void> root(const tar_entry& entry);
    result<void> file(const place& at, const data_source& data);
    result<void> directory(const place& at);
    result<void> symlink(const place& at);
    result<void> hardlink(const place& at);
    result<void> node(const place& at);

    result<void> describe_fd(const place& at, int fd);
    result<void> describe_path(const place& at);
    result<void> mark_opaque(int dir_fd);
    void warn(const tar_entry& entry, const std::string& what);
    bool keeps_xattr(const tar_entry& entry, const std::string& name);

    int root_fd_;
    budget& usage_;
    apply_options options_;
    dir_walk walk_;
    dir_walk target_walk_;
    layer_summary summary_;
    std::map<std::string, timespec> directory_times_;
    std::set<std::string> hidden_; ///< paths whose lower content is hidden: a directory made there is opaque
};

} // namespace gantry::cri_helper
