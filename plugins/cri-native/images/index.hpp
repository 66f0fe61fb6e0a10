// The store's records: every image and layer, kept in one file so that any change is one rename.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "gantry/sdk/result.hpp"
#include "plugins/cri-native/images/image.hpp"

namespace gantry::images {

struct layer_record {
    std::string diff_id;
    std::string
        chain; ///< empty, or the only stack (image-spec ChainID) it fits: it was completed from its lower layers
    std::uint64_t bytes = 0;
    std::uint64_t inodes = 0;
    bool opaque_root = false; ///< hides every layer below it
};

struct image_record {
    image info;                      ///< without size, references and layers
    std::vector<std::string> tags;   ///< canonical
    std::vector<std::string> names;  ///< name@sha256:...
    std::vector<std::string> layers; ///< keys of index::layers, bottom to top
};

struct index {
    std::uint64_t next_layer = 1;
    std::map<std::string, layer_record> layers; ///< by directory name
    std::map<std::string, image_record> images; ///< by id
};

std::string to_text(const index& records);
result<index> parse_index(std::string_view text);

/// The fields of an image config as the helper writes them (helper/config.hpp). The second throws on other input.
base::json::object config_fields(const image& from);
image image_with(const std::string& id, const base::json::object& fields);

/// A list of strings; throws on other input.
std::vector<std::string> strings_in(const base::json::value& list);

} // namespace gantry::images
