// What a tar entry's name means in a layer (image-spec layer.md): pure text, no file system.
#pragma once

#include <string>
#include <string_view>

#include "gantry/sdk/result.hpp"

namespace gantry::cri_helper {

enum class name_kind {
    entry,    ///< parent/base is created
    root,     ///< "./" or "/": the layer's root directory itself
    whiteout, ///< parent/base is hidden in the layers below
    opaque,   ///< everything in parent is hidden in the layers below
    ignored,  ///< another builder's bookkeeping (.wh..wh.plnk, .wh..wh.aufs, ...)
};

struct entry_name {
    name_kind kind = name_kind::entry;
    std::string parent; ///< "a/b", no slash at either end; empty for the root
    std::string base;

    std::string path() const { return parent.empty() ? base : parent + "/" + base; }
};

/// Cleans a name lexically. code::invalid for names that are empty, too long (4096), leave the root, or use the
/// reserved prefix .wh. in a way that has no meaning; the message does not repeat the name.
result<entry_name> parse_entry_name(std::string_view raw);

/// The cleaned path of a hard link's target; the same rules without whiteouts.
result<entry_name> parse_link_target(std::string_view raw);

/// Printable form for messages: quoted, bytes outside printable ASCII as \xNN, cut at 256.
std::string quote(std::string_view raw);

} // namespace gantry::cri_helper
