// Image archives put together by hand: docker-archives and OCI layouts with any mistake a test wants.
#pragma once

#include <string>
#include <vector>

#include "base/json.hpp"

namespace gantry::test {

std::string gzip(const std::string& bytes);
std::string zstd(const std::string& bytes);

struct test_layer {
    std::string packed; ///< as it lies in the archive
    std::string tar;    ///< what its diffID is of
    std::string media_type = "application/vnd.oci.image.layer.v1.tar";
    base::json::array urls{}; ///< makes it foreign
};

inline test_layer plain_layer(const std::string& tar) { return {.packed = tar, .tar = tar}; }
inline test_layer gzip_layer(const std::string& tar) {
    return {.packed = gzip(tar), .tar = tar, .media_type = "application/vnd.oci.image.layer.v1.tar+gzip"};
}
inline test_layer zstd_layer(const std::string& tar) {
    return {.packed = zstd(tar), .tar = tar, .media_type = "application/vnd.oci.image.layer.v1.tar+zstd"};
}

struct test_image {
    std::vector<test_layer> layers;
    std::vector<std::string> tags{};     ///< RepoTags, or a ref.name annotation each
    base::json::object run{};            ///< the config's `config`
    std::vector<std::string> diff_ids{}; ///< instead of the right ones
    std::string architecture{"amd64"};
    std::string os{"linux"};
    std::string config_padding{}; ///< put into the config as an unknown field

    std::string config() const;
    std::string id() const;
};

/// `docker save` before version 25.
std::string docker_archive(const std::vector<test_image>& images);

/// An OCI layout, built blob by blob.
class oci_layout {
public:
    base::json::object blob(const std::string& bytes, const std::string& media_type);
    base::json::object manifest(const test_image& image);
    void entry(base::json::object descriptor, const std::string& ref_name = {});
    void image(const test_image& image);
    /// Replaces the bytes of a blob, not its name.
    void damage(const std::string& digest, const std::string& bytes);

    std::string str() const;

private:
    std::vector<std::pair<std::string, std::string>> blobs_; // digest, bytes
    base::json::array manifests_;
};

std::string oci_archive(const test_image& image);

} // namespace gantry::test
