// Runs the sandboxed helper on one archive and collects what it unpacked.
#pragma once

#include <string>
#include <vector>

#include "gantry/sdk/result.hpp"
#include "plugins/cri-native/helper/request.hpp"
#include "plugins/cri-native/images/image_store.hpp"
#include "plugins/cri-native/images/index.hpp"

namespace gantry::images {

struct unpacked_layer {
    std::string dir; ///< relative to the work directory: new/K
    layer_record record;
};

struct unpacked_image {
    image info;
    std::vector<std::string> refs;   ///< as written in the archive
    std::string manifest_digest;     ///< may be empty
    std::vector<std::string> layers; ///< "lower/NAME" for a layer the store has, "new/K" for one of this load
};

struct unpacked {
    std::vector<unpacked_layer> layers;
    std::vector<unpacked_image> images;
};

/// Descriptors that the helper works on, borrowed. request_fd is a file: it keeps the load's lock while a helper lives.
struct helper_fds {
    int request = -1;
    int archive = -1;
    int work = -1;
    int layers = -1;
};

/// Blocks until the helper has ended. [worker]
result<unpacked> run_helper(const store_options& store, const load_options& options, const helper_fds& fds);

} // namespace gantry::images
