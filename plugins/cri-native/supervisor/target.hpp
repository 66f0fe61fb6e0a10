// Finds and creates paths inside a container's root by descriptors only (3.2 step 5): whatever the image's symlinks
// say, and whatever another container changes meanwhile, the result lies inside the root.
#pragma once

#include "plugins/cri-native/supervisor/text.hpp"

namespace gantry::cri_native::supervisor {

enum class missing : unsigned char { fail, make_directory, make_file };

struct target_options {
    missing if_missing = missing::fail;
    bool no_symlink = false; ///< no component may be a symlink (/proc, /sys, /dev)
};

/// An O_PATH descriptor for `path` inside `root`, or -1 with errno (ELOOP where no_symlink forbids one).
int open_target(int root, text path, target_options options) noexcept;

/// The same for the directory that holds `path`'s last component, which is copied to name (NUL-terminated).
int open_parent(int root, text path, char* name, std::size_t name_size) noexcept;

} // namespace gantry::cri_native::supervisor
