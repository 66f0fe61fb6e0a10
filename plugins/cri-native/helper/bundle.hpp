// What an archive says it holds: its images with their configs and layers, from docker's manifest.json or an OCI
// layout's index.json. Everything that is only text is checked here; blobs are checked while they are read.
#pragma once

#include <string>
#include <vector>

#include "base/json.hpp"
#include "gantry/sdk/result.hpp"
#include "plugins/cri-native/helper/archive_file.hpp"
#include "plugins/cri-native/helper/request.hpp"

namespace gantry::cri_helper {

struct layer_blob {
    member where{};
    std::string digest{};  ///< of the blob as it lies there; empty when the archive does not say
    std::string diff_id{}; ///< of its tar
    std::string below{};   ///< chain ID of the layers below; empty for the lowest
    std::string chain{};   ///< image-spec config.md, "Layer ChainID"
};

struct bundle_image {
    std::string id;
    std::vector<std::string> refs; ///< as written
    std::string manifest_digest;   ///< empty in a docker-archive
    base::json::object config;     ///< see config.hpp
    std::vector<layer_blob> layers;
};

result<std::vector<bundle_image>> read_bundle(const archive_file& archive, const load_request& request);

} // namespace gantry::cri_helper
