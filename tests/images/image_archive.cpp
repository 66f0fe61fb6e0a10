#include "tests/images/image_archive.hpp"

#include <algorithm>
#include <stdexcept>

#include <zlib.h>
#include <zstd.h>

#include "plugins/cri-native/helper/digest.hpp"
#include "tests/images/tar.hpp"

namespace gantry::test {

using base::json::array;
using base::json::object;
using cri_helper::digest_of;

std::string gzip(const std::string& bytes) {
    z_stream stream{};
    if (::deflateInit2(&stream, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        throw std::runtime_error("deflateInit2");
    std::string out(::deflateBound(&stream, bytes.size()), '\0');
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    stream.avail_in = static_cast<uInt>(bytes.size());
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = static_cast<uInt>(out.size());
    ::deflate(&stream, Z_FINISH);
    out.resize(stream.total_out);
    ::deflateEnd(&stream);
    return out;
}

std::string zstd(const std::string& bytes) {
    std::string out(::ZSTD_compressBound(bytes.size()), '\0');
    out.resize(::ZSTD_compress(out.data(), out.size(), bytes.data(), bytes.size(), 3));
    return out;
}

std::string test_image::config() const {
    array diffs(diff_ids.begin(), diff_ids.end());
    if (diff_ids.empty())
        for (const auto& layer : layers) diffs.emplace_back(digest_of(layer.tar));
    return base::to_text(object{{"architecture", architecture},
                                {"os", os},
                                {"created", "2023-11-14T22:13:20Z"},
                                {"config", run},
                                {"padding", config_padding},
                                {"rootfs", object{{"type", "layers"}, {"diff_ids", diffs}}}});
}

std::string test_image::id() const { return digest_of(config()); }

std::string docker_archive(const std::vector<test_image>& images) {
    tar out;
    array manifest;
    for (const auto& image : images) {
        array layers;
        for (std::size_t i = 0; i < image.layers.size(); ++i) {
            const auto path = image.id().substr(7, 12) + "-" + std::to_string(i) + "/layer.tar";
            out.file(path, image.layers[i].packed);
            layers.emplace_back(path);
        }
        const auto config = image.id().substr(7) + ".json";
        out.file(config, image.config());
        manifest.push_back(
            object{{"Config", config},
                   {"RepoTags", image.tags.empty() ? base::json::value(nullptr)
                                                   : base::json::value(array(image.tags.begin(), image.tags.end()))},
                   {"Layers", layers}});
    }
    return out.file("manifest.json", base::to_text(manifest)).str();
}

object oci_layout::blob(const std::string& bytes, const std::string& media_type) {
    const auto digest = digest_of(bytes);
    blobs_.emplace_back(digest, bytes);
    return {{"mediaType", media_type}, {"digest", digest}, {"size", bytes.size()}};
}

object oci_layout::manifest(const test_image& image) {
    array layers;
    for (const auto& layer : image.layers) {
        auto descriptor = blob(layer.packed, layer.media_type);
        if (!layer.urls.empty()) descriptor["urls"] = layer.urls;
        layers.push_back(std::move(descriptor));
    }
    const object manifest{{"schemaVersion", 2},
                          {"config", blob(image.config(), "application/vnd.oci.image.config.v1+json")},
                          {"layers", layers}};
    return blob(base::to_text(manifest), "application/vnd.oci.image.manifest.v1+json");
}

void oci_layout::entry(object descriptor, const std::string& ref_name) {
    if (!ref_name.empty()) descriptor["annotations"] = object{{"org.opencontainers.image.ref.name", ref_name}};
    manifests_.push_back(std::move(descriptor));
}

void oci_layout::image(const test_image& image) {
    const auto descriptor = manifest(image);
    if (image.tags.empty()) entry(descriptor);
    for (const auto& tag : image.tags) entry(descriptor, tag);
}

void oci_layout::damage(const std::string& digest, const std::string& bytes) {
    for (auto& [name, content] : blobs_)
        if (name == digest) content = bytes;
}

std::string oci_layout::str() const {
    tar out;
    out.file("oci-layout", R"({"imageLayoutVersion":"1.0.0"})");
    out.file("index.json", base::to_text(object{{"schemaVersion", 2}, {"manifests", manifests_}}));
    for (const auto& [digest, bytes] : blobs_) out.file("blobs/sha256/" + digest.substr(7), bytes);
    return out.str();
}

std::string oci_archive(const test_image& image) {
    oci_layout layout;
    layout.image(image);
    return layout.str();
}

} // namespace gantry::test
