// Reads a small file out of an image's layers without mounting them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gantry/sdk/result.hpp"

namespace gantry::cri_native {

/// The bytes of a regular file as the mounted image would show it, found by walking the layer directories: upper layers
/// hide lower ones, whiteouts (char device 0:0) and opaque directories count, and symlinks resolve inside the image
/// only, whatever they say. layers: top first, as overlayfs's lowerdir lists them; layer contents must not change
/// meanwhile. nullopt when there is no such file or it is not regular; code::invalid past `limit` bytes or 40 symlinks.
/// [any, blocks]
result<std::optional<std::string>> read_image_file(const std::vector<std::string>& layers, const std::string& path,
                                                   std::size_t limit = 4u << 20);

} // namespace gantry::cri_native
