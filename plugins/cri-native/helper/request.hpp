// What the store asks of `gantry-cri-helper load`: one JSON object on descriptor 0. 1 takes the replies, 3 is the
// archive, 4 the load's work directory, 5 the store's layers (read only).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gantry/sdk/result.hpp"

namespace gantry::cri_helper {

struct known_layer {
    std::string dir;
    std::string diff_id;
    std::string chain; ///< empty, or the only chain ID it may be used for
    bool opaque_root = false;
};

struct load_request {
    std::string default_ref;
    bool user_xattr = false;
    bool device_nodes = true;
    std::uint64_t bytes = 0;
    std::uint64_t inodes = 0;
    std::uint64_t ratio = 0;
    std::uint64_t ratio_floor = 0;
    std::uint64_t layers = 0;
    std::uint64_t manifest_bytes = 0;
    std::uint64_t config_bytes = 0;
    std::vector<known_layer> known;
};

result<load_request> parse_request(std::string_view text);
std::string to_text(const load_request& request);

} // namespace gantry::cri_helper
