// Mounting by descriptors: the new mount API, and mount(2) through /proc/self/fd where a kernel lacks it. Works only
// while the host's /proc is in sight, so before pivot_root.
#pragma once

#include <sys/mount.h>

#include <cstdint>

#include "plugins/cri-native/supervisor/sys.hpp"
#include "plugins/cri-native/supervisor/text.hpp"

namespace gantry::cri_native::supervisor {

/// "/proc/self/fd/N".
line<40> fd_path(int fd) noexcept;

/// Where to mount: an O_PATH descriptor, and how it was found (mount(2) gives no descriptor for the new mount's root:
/// it is looked up again, inside the root).
struct spot {
    int root = -1;
    text path;
    int fd = -1;
};

/// A filesystem that is about to be mounted; options are "key=value" or "key".
class new_filesystem {
public:
    enum class api : unsigned char { newest, mount2 };
    explicit new_filesystem(const char* type, api which = api::newest) noexcept;
    void option(text option) noexcept;
    void option(const char* key_value) noexcept;

    /// Mounts it. The mount's root, or -1 with errno; detail() may say more.
    int mount_on(const spot& where, std::uint64_t attributes) noexcept;
    text detail() const noexcept { return detail_; }

private:
    void read_detail() noexcept;

    const char* type_;
    bool legacy_api_;
    sys::fd context_;   ///< new API
    int error_ = 0;     ///< first failure of an option, reported by mount_on
    line<4096> legacy_; ///< comma-separated options
    line<400> detail_;
};

/// A tree to bind, taken from a path or a descriptor; taking it early keeps its propagation as it is on the host.
int take_tree(const char* path, bool recursive) noexcept;
int take_tree(int fd, bool recursive) noexcept;
/// Binds a taken tree. The mount's root, or -1 with errno. Consumes nothing.
int bind_on(int tree, const spot& where, bool recursive) noexcept;

/// Sets MOUNT_ATTR_* bits on a mount that is attached. ENOSYS when recursive is asked of a kernel that cannot.
bool add_attributes(int mount_root, std::uint64_t attributes, bool recursive) noexcept;
/// MS_PRIVATE, MS_SLAVE or MS_SHARED for a mount and all below it.
bool set_propagation(int mount_root, unsigned long propagation) noexcept;

} // namespace gantry::cri_native::supervisor
