// The node's image store: unpacked layers and image records below one directory.
//
//   DIR/index.json   every image, tag and layer; replaced by tmp + rename: the only commit point
//   DIR/layers/N/    one unpacked layer, N a short number (overlay's option string is limited to a page)
//   DIR/staging/N/   loads under way and what is being deleted; swept at open
//   DIR/lock         held while a store is open
//
// A layer directory that no record names is garbage and is removed at open: a kill at any point leaves the old or the
// new state. A power cut too: the file system is synced once before a load is committed.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "gantry/sdk/result.hpp"
#include "plugins/cri-native/images/image.hpp"
#include "plugins/cri-native/images/spawn.hpp"

namespace gantry::images {

/// What a hostile archive may cost; passing one fails the load with code::resource.
struct load_limits {
    std::uint64_t bytes = 64ull << 30;      ///< unpacked file data of one load; also never more than the disk has free
    std::uint64_t inodes = 2'000'000;       ///< entries of one load
    std::uint64_t ratio = 1000;             ///< unpacked : packed of a layer, once it is past ratio_floor
    std::uint64_t ratio_floor = 256u << 20; ///< bytes
    std::uint32_t layers = 128;             ///< of an image
    std::uint64_t manifest_bytes = 4u << 20;
    std::uint64_t config_bytes = 8u << 20;
};

struct store_options {
    std::string dir;    ///< created when missing, 0700
    std::string helper; ///< absolute path of gantry-cri-helper
    spawner spawn;      ///< empty: posix_spawner()
    load_limits limits;
    bool device_nodes = true; ///< create device nodes found in layers (false: skip them)
    /// Called before each step of a commit or removal with its number from 1: lets a test die exactly there.
    std::function<void(int)> on_step;
};

struct load_progress {
    std::string layer;       ///< the layer's diffID
    std::uint64_t done = 0;  ///< bytes of the (packed) layer consumed
    std::uint64_t total = 0; ///< its size
};

struct load_options {
    std::string default_ref; ///< names the image of an archive that names none; may be empty
    std::function<void(const load_progress&)> on_progress; ///< called on the thread of load
    std::function<void(const std::string&)> on_warning;    ///< what was skipped, and why; the same thread
    std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
    std::stop_token stop;
};

struct loaded_image {
    std::string id;
    std::vector<std::string> refs{}; ///< normalised tags it got
    std::uint64_t size = 0;
};

struct fs_usage {
    std::string mountpoint; ///< the store's directory
    std::uint64_t used_bytes = 0;
    std::uint64_t inodes_used = 0;
};

/// All members may be called from any thread; load, remove and open block on disk.
class image_store {
public:
    /// Fails with code::busy when another process has the store open.
    static result<std::unique_ptr<image_store>> open(store_options options);

    ~image_store();
    image_store(const image_store&) = delete;
    image_store& operator=(const image_store&) = delete;

    /// Loads every image of a docker-archive or OCI-layout tar (plain, gzip or zstd; a file or a pipe) and moves the
    /// tags it names to them. All or nothing: on failure the store is unchanged and the error names entry and system
    /// call. Errors: invalid (malformed, hostile, digest mismatch), resource (limits, disk full), unsupported (foreign
    /// layers, unknown compression), timeout, cancelled, unavailable (the helper could not run or died).
    result<std::vector<loaded_image>> load(int archive_fd, const load_options& options = {});

    std::vector<image> list() const; ///< sorted by id

    /// By reference (normalised first; digest before tag), image id ("sha256:HEX" or HEX) or a unique prefix of at
    /// least 12 hex digits. code::not_found, or code::invalid (InvalidImageName) for what can be neither.
    result<image> resolve(std::string_view ref_or_id) const;

    /// A reference is untagged, and the image deleted with its last one; an id deletes the image with all its
    /// references. Success when nothing is there. code::busy, naming the users, when a deletion is due and containers
    /// pin the image.
    result<void> remove(std::string_view ref_or_id);

    /// A pinned image keeps its layers. Pins are not stored: after a restart the runtime pins again from its own
    /// records before it allows removals. Pinning twice is one pin. code::not_found for an unknown image.
    result<void> pin(const std::string& image_id, const std::string& user);
    void unpin(const std::string& image_id, const std::string& user);

    fs_usage fs_info() const;

    /// Overlay marks are user.overlay.* xattrs (the node runs in a user namespace): mount with `userxattr`.
    bool user_xattr() const noexcept;

private:
    struct state;
    explicit image_store(std::unique_ptr<state> s);
    std::unique_ptr<state> state_;
};

} // namespace gantry::images
