// What the image store knows about an image: plain values.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace gantry::images {

/// The part of an OCI image config that a launcher needs (image-spec config.md, `config`). An entrypoint of one empty
/// string, as builders write it to reset the parent's, is stored as none.
struct image_config {
    std::string user;
    std::vector<std::string> env; ///< NAME=value
    std::vector<std::string> entrypoint;
    std::vector<std::string> cmd;
    std::string working_dir;
    std::string stop_signal;
    std::vector<std::string> volumes;       ///< container paths, sorted
    std::vector<std::string> exposed_ports; ///< "80/tcp", sorted
    std::map<std::string, std::string> labels;

    bool operator==(const image_config&) const = default;
};

struct image {
    std::string id;                        ///< "sha256:" + digest of the config: what CRI calls the image's id
    std::vector<std::string> repo_tags;    ///< normalised: docker.io/library/busybox:demo
    std::vector<std::string> repo_digests; ///< name@sha256:MANIFEST; empty for docker-archives, which carry none
    std::uint64_t size = 0;                ///< bytes in the unpacked layers
    std::string created;                   ///< RFC 3339 as in the config, may be empty
    std::string os;
    std::string architecture;
    image_config config;
    std::vector<std::string> layers; ///< absolute directories, bottom to top: overlay's lowerdirs reversed; never empty

    bool operator==(const image&) const = default;
};

} // namespace gantry::images
