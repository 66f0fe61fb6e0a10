#include "plugins/cri-native/helper/bundle.hpp"

#include <algorithm>

#include "base/invalid.hpp"
#include "plugins/cri-native/helper/config.hpp"
#include "plugins/cri-native/helper/digest.hpp"
#include "plugins/cri-native/helper/entry_name.hpp"
#include "plugins/cri-native/images/reference.hpp"

namespace gantry::cri_helper {

namespace {

using base::json::array;
using base::json::object;
using base::json::value;

constexpr int index_depth = 4;
constexpr std::size_t image_limit = 1024;

std::string string_at(const object& in, std::string_view key) {
    const auto* found = in.if_contains(key);
    return found != nullptr && found->is_string() ? std::string(found->as_string()) : std::string();
}

const array* array_at(const object& in, std::string_view key) {
    const auto* found = in.if_contains(key);
    return found != nullptr ? found->if_array() : nullptr;
}

/// GOARCH of this build: the helper runs on the node it unpacks for.
constexpr const char* node_architecture =
#if defined(__x86_64__)
    "amd64";
#elif defined(__aarch64__)
    "arm64";
#elif defined(__riscv)
    "riscv64";
#elif defined(__s390x__)
    "s390x";
#elif defined(__powerpc64__)
    "ppc64le";
#endif

class reader {
public:
    reader(const archive_file& archive, const load_request& request) : archive_(archive), request_(request) {}

    result<std::vector<bundle_image>> read() {
        const bool oci = archive_.has("index.json") && archive_.has("oci-layout");
        if (!oci && !archive_.has("manifest.json"))
            return invalid(
                "this is neither a docker-archive (manifest.json) nor an OCI layout (oci-layout, index.json)");
        if (oci) {
            GANTRY_CHECK(read_oci());
        } else {
            GANTRY_CHECK(read_docker());
        }
        if (images_.empty()) return invalid("the archive holds no image");
        name_the_unnamed();
        return std::move(images_);
    }

private:
    result<value> document(std::string_view path, std::uint64_t limit) {
        GANTRY_TRY(const auto text, archive_.read(path, limit));
        return base::parse_json(text, path);
    }

    // ---- docker-archive: [{"Config": path, "RepoTags": [...], "Layers": [path, ...]}]
    result<void> read_docker() {
        GANTRY_TRY(const auto manifest, document("manifest.json", request_.manifest_bytes));
        if (!manifest.is_array()) return invalid("manifest.json is not a list");
        for (const auto& item : manifest.as_array()) {
            const auto* entry = item.if_object();
            const auto* layers = entry != nullptr ? array_at(*entry, "Layers") : nullptr;
            if (layers == nullptr && (entry == nullptr || !entry->contains("Config")))
                return invalid("manifest.json: an entry has neither Config nor Layers");
            std::vector<layer_blob> blobs;
            for (const auto& layer : layers != nullptr ? *layers : array{}) {
                if (!layer.is_string()) return invalid("manifest.json: a layer is not a path");
                const std::string path(layer.as_string());
                const auto where = archive_.find(clean(path));
                if (!where) return invalid("manifest.json: layer " + quote(path) + " is not in the archive");
                blobs.push_back({.where = *where, .digest = digest_in_name(path)});
            }
            const auto config = string_at(*entry, "Config");
            GANTRY_TRY(const auto text, archive_.read(clean(config), request_.config_bytes));
            auto promised = digest_in_name(config);
            GANTRY_TRY(auto* image, add_image(text, promised, std::move(blobs)));
            if (const auto* tags = array_at(*entry, "RepoTags"))
                for (const auto& tag : *tags)
                    if (tag.is_string()) image->refs.emplace_back(tag.as_string());
        }
        return {};
    }

    // ---- OCI layout: index.json -> (index ->) manifest -> config, layers
    result<void> read_oci() {
        GANTRY_TRY(const auto index, document("index.json", request_.manifest_bytes));
        GANTRY_CHECK(read_index(index, {}, 0));
        if (!archive_.has("manifest.json")) return {};
        // `docker save` writes both; an old one puts the tags only here.
        GANTRY_TRY(const auto manifest, document("manifest.json", request_.manifest_bytes));
        for (const auto& item : manifest.is_array() ? manifest.as_array() : array{}) {
            const auto* entry = item.if_object();
            const auto* tags = entry != nullptr ? array_at(*entry, "RepoTags") : nullptr;
            if (tags == nullptr) continue;
            for (auto& image : images_)
                if (image.refs.empty() && image.id == digest_in_name(string_at(*entry, "Config")))
                    for (const auto& tag : *tags)
                        if (tag.is_string()) image.refs.emplace_back(tag.as_string());
        }
        return {};
    }

    /// What the archive's top level says of an image: the digest is what a registry would resolve its name to.
    struct top_level {
        std::string digest;
        std::vector<std::string> names;
    };

    result<void> read_index(const value& index, const top_level& top, int depth) {
        const auto* root = index.if_object();
        const auto* manifests = root != nullptr ? array_at(*root, "manifests") : nullptr;
        if (manifests == nullptr) return invalid("an image index has no list of manifests");
        if (depth > index_depth)
            return invalid("image indexes are nested more than " + std::to_string(index_depth) + " deep");
        // Below the top an index lists one image for several platforms.
        const object* best = nullptr;
        for (const auto& item : *manifests) {
            const auto* descriptor = item.if_object();
            if (descriptor == nullptr) return invalid("an image index holds something that is no descriptor");
            if (is_attestation(*descriptor)) continue;
            if (depth == 0) {
                GANTRY_CHECK(
                    read_descriptor(*descriptor, {string_at(*descriptor, "digest"), names_of(*descriptor)}, depth));
            } else if (best == nullptr && fits(*descriptor)) {
                best = descriptor;
            }
        }
        if (depth == 0) return {};
        if (best == nullptr)
            return error{.code = code::unsupported,
                         .message = std::string("the image has no manifest for linux/") + node_architecture};
        return read_descriptor(*best, top, depth);
    }

    result<void> read_descriptor(const object& descriptor, const top_level& top, int depth) {
        const auto digest = string_at(descriptor, "digest");
        GANTRY_TRY(const auto text, verified_blob(descriptor, request_.manifest_bytes));
        GANTRY_TRY(const auto document, base::parse_json(text, digest));
        const auto* root = document.if_object();
        if (root == nullptr) return invalid("manifest " + digest + " is not an object");
        if (root->contains("manifests")) return read_index(document, top, depth + 1);
        const auto* config = root->if_contains("config") != nullptr ? root->at("config").if_object() : nullptr;
        const auto* layers = array_at(*root, "layers");
        if (config == nullptr || layers == nullptr)
            return error{.code = code::unsupported,
                         .message = "manifest " + digest + " has no config and layers: it is no image of schema 2"};
        std::vector<layer_blob> blobs;
        for (const auto& item : *layers) {
            const auto* layer = item.if_object();
            if (layer == nullptr) return invalid("manifest " + digest + ": a layer is no descriptor");
            GANTRY_TRY(auto blob, layer_of(*layer));
            blobs.push_back(std::move(blob));
        }
        GANTRY_TRY(const auto config_text, verified_blob(*config, request_.config_bytes));
        GANTRY_TRY(auto* image, add_image(config_text, string_at(*config, "digest"), std::move(blobs)));
        image->manifest_digest = top.digest;
        image->refs.insert(image->refs.end(), top.names.begin(), top.names.end());
        return {};
    }

    result<member> blob_of(const object& descriptor) {
        const auto digest = string_at(descriptor, "digest");
        if (!images::is_digest(digest))
            return error{.code = code::unsupported, .message = "digest " + quote(digest) + " is not sha256"};
        const auto where = archive_.find("blobs/sha256/" + digest.substr(7));
        if (!where) return invalid("blob " + digest + " is not in the archive");
        if (const auto* size = descriptor.if_contains("size"); size != nullptr) {
            if (!size->is_int64() || static_cast<std::uint64_t>(size->as_int64()) != where->size)
                return invalid("blob " + digest + " has " + std::to_string(where->size) +
                               " bytes, its descriptor says otherwise");
        }
        return *where;
    }

    result<std::string> verified_blob(const object& descriptor, std::uint64_t limit) {
        GANTRY_TRY(const auto where, blob_of(descriptor));
        const auto digest = string_at(descriptor, "digest");
        GANTRY_TRY(auto text, archive_.read(where, digest, limit));
        if (const auto actual = digest_of(text); actual != digest)
            return invalid("blob " + digest + " has digest " + actual);
        return text;
    }

    result<layer_blob> layer_of(const object& descriptor) {
        const auto type = string_at(descriptor, "mediaType");
        const auto digest = string_at(descriptor, "digest");
        const auto* urls = array_at(descriptor, "urls");
        if ((urls != nullptr && !urls->empty()) || type.find("foreign") != std::string::npos ||
            type.find("nondistributable") != std::string::npos)
            return error{.code = code::unsupported,
                         .message = "layer " + digest + " is foreign: its content lies elsewhere"};
        GANTRY_TRY(const auto where, blob_of(descriptor));
        return layer_blob{.where = where, .digest = digest};
    }

    // ---- common
    result<bundle_image*> add_image(const std::string& config, const std::string& promised,
                                    std::vector<layer_blob> layers) {
        const auto id = digest_of(config);
        if (!promised.empty() && promised != id) return invalid("image config " + promised + " has digest " + id);
        GANTRY_TRY(auto parsed, parse_config(config));
        if (layers.size() != parsed.diff_ids.size())
            return invalid("image " + id + " has " + std::to_string(layers.size()) + " layers, its config names " +
                           std::to_string(parsed.diff_ids.size()));
        if (layers.size() > request_.layers)
            return error{.code = code::resource,
                         .message = "image " + id + " has " + std::to_string(layers.size()) + " layers, the limit is " +
                                    std::to_string(request_.layers)};
        std::string chain;
        for (std::size_t i = 0; i < layers.size(); ++i) {
            layers[i].diff_id = parsed.diff_ids[i];
            layers[i].below = chain;
            chain = chain.empty() ? layers[i].diff_id : digest_of(chain + " " + layers[i].diff_id);
            layers[i].chain = chain;
        }
        const auto same =
            std::find_if(images_.begin(), images_.end(), [&](const auto& image) { return image.id == id; });
        if (same != images_.end()) return &*same;
        if (images_.size() >= image_limit)
            return error{.code = code::resource,
                         .message = "the archive has more than " + std::to_string(image_limit) + " images"};
        images_.push_back({.id = id,
                           .refs = {},
                           .manifest_digest = {},
                           .config = std::move(parsed.fields),
                           .layers = std::move(layers)});
        return &images_.back();
    }

    static std::string clean(const std::string& path) {
        const auto name = parse_link_target(path);
        return name ? name->path() : std::string();
    }

    /// docker-archives name a config HEX.json or blobs/sha256/HEX, and new ones layers too.
    static std::string digest_in_name(const std::string& path) {
        auto name = path.substr(path.rfind('/') + 1);
        const bool blob = path.starts_with("blobs/sha256/");
        if (name.ends_with(".json"))
            name.resize(name.size() - 5);
        else if (!blob)
            return {};
        const auto digest = "sha256:" + name;
        return images::is_digest(digest) ? digest : std::string();
    }

    static bool is_attestation(const object& descriptor) {
        const auto* annotations = descriptor.if_contains("annotations");
        return annotations != nullptr && annotations->is_object() &&
               annotations->as_object().contains("vnd.docker.reference.type");
    }

    static bool fits(const object& descriptor) {
        const auto* platform = descriptor.if_contains("platform");
        if (platform == nullptr || !platform->is_object()) return true;
        return string_at(platform->as_object(), "os") == "linux" &&
               string_at(platform->as_object(), "architecture") == node_architecture;
    }

    /// A bare tag ("latest") names no repository: such an image counts as unnamed.
    static std::vector<std::string> names_of(const object& descriptor) {
        const auto* annotations = descriptor.if_contains("annotations");
        if (annotations == nullptr || !annotations->is_object()) return {};
        if (auto full = string_at(annotations->as_object(), "io.containerd.image.name"); !full.empty()) return {full};
        auto name = string_at(annotations->as_object(), "org.opencontainers.image.ref.name");
        if (name.find_first_of("/:@") == std::string::npos) return {};
        return {name};
    }

    void name_the_unnamed() {
        const auto unnamed = [](const auto& image) { return image.refs.empty(); };
        if (request_.default_ref.empty() || std::count_if(images_.begin(), images_.end(), unnamed) != 1) return;
        std::find_if(images_.begin(), images_.end(), unnamed)->refs.push_back(request_.default_ref);
    }

    const archive_file& archive_;
    const load_request& request_;
    std::vector<bundle_image> images_;
};

} // namespace

result<std::vector<bundle_image>> read_bundle(const archive_file& archive, const load_request& request) {
    return reader(archive, request).read();
}

} // namespace gantry::cri_helper
