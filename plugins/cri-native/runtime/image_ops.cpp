#include "plugins/cri-native/runtime/image_ops.hpp"

#include "base/json.hpp"
#include "plugins/cri-native/runtime/clock.hpp"
#include "plugins/cri-native/runtime/spec/user.hpp"

namespace gantry::cri_native {

namespace {

namespace cri = runtime::v1;
namespace json = base::json;

cri::Image message_of(const images::image& from) {
    cri::Image made;
    made.set_id(from.id);
    for (const auto& tag : from.repo_tags) made.add_repo_tags(tag);
    for (const auto& digest : from.repo_digests) made.add_repo_digests(digest);
    made.set_size(from.size);
    // A numeric USER goes by uid, anything else by name, so that the caller can judge runAsNonRoot.
    const std::string user = from.config.user.substr(0, from.config.user.find(':'));
    if (const auto uid = parse_id(user); uid)
        made.mutable_uid()->set_value(*uid);
    else
        made.set_username(user);
    made.mutable_spec()->set_image(from.id);
    return made;
}

std::string reference_of(const images::image& image) {
    return image.repo_digests.empty() ? image.id : image.repo_digests.front();
}

} // namespace

result<cri::ListImagesResponse> list_images(images::image_store& store, const cri::ListImagesRequest& request) {
    cri::ListImagesResponse response;
    const std::string& wanted = request.filter().image().image();
    if (!wanted.empty()) {
        const auto found = store.resolve(wanted);
        if (found) *response.add_images() = message_of(*found);
        if (!found && found.error().code != code::not_found) return found.error();
        return response;
    }
    for (const auto& image : store.list()) *response.add_images() = message_of(image);
    return response;
}

result<cri::ImageStatusResponse> image_status(images::image_store& store, const cri::ImageStatusRequest& request) {
    cri::ImageStatusResponse response;
    const auto found = store.resolve(request.image().image());
    if (!found)
        return found.error().code == code::not_found ? result<cri::ImageStatusResponse>(response) : found.error();
    *response.mutable_image() = message_of(*found);
    if (request.verbose()) {
        json::object info;
        info["created"] = found->created;
        info["os"] = found->os;
        info["architecture"] = found->architecture;
        info["layers"] = found->layers.size();
        json::object labels;
        for (const auto& [name, value] : found->config.labels) labels[name] = value;
        info["labels"] = std::move(labels);
        (*response.mutable_info())["info"] = base::to_text(info);
    }
    return response;
}

result<cri::PullImageResponse> pull_image(images::image_store& store, const cri::PullImageRequest& request) {
    const auto found = store.resolve(request.image().image());
    if (!found && found.error().code != code::not_found) return found.error();
    if (!found)
        return error{.code = code::unsupported,
                     .message = "image " + request.image().image() +
                                " is not on this node, and cri-native pulls from no registry; load it "
                                "with `gantry image load`"};
    cri::PullImageResponse response;
    response.set_image_ref(reference_of(*found));
    return response;
}

result<cri::RemoveImageResponse> remove_image(images::image_store& store, const cri::RemoveImageRequest& request) {
    GANTRY_CHECK(store.remove(request.image().image()));
    return cri::RemoveImageResponse{};
}

result<cri::ImageFsInfoResponse> image_fs_info(images::image_store& store, const cri::ImageFsInfoRequest&) {
    const auto usage = store.fs_info();
    cri::ImageFsInfoResponse response;
    auto* images = response.add_image_filesystems();
    images->set_timestamp(unix_now());
    images->mutable_fs_id()->set_mountpoint(usage.mountpoint);
    images->mutable_used_bytes()->set_value(usage.used_bytes);
    images->mutable_inodes_used()->set_value(usage.inodes_used);
    *response.add_container_filesystems() = *images; // writable layers are beside the image layers
    return response;
}

result<std::string> load_images(images::image_store& store, std::string_view text, int archive, const sdk::op& op) {
    images::load_options options;
    if (!text.empty()) {
        GANTRY_TRY(const auto request, base::parse_json(text, "request of image load"));
        const auto* ref = request.is_object() ? request.get_object().if_contains("ref") : nullptr;
        if (ref != nullptr && ref->is_string()) options.default_ref = std::string(ref->get_string());
    }
    options.on_progress = [&op](const images::load_progress& progress) {
        op.progress(progress.done, progress.total, progress.layer);
    };
    options.deadline = op.deadline();
    options.stop = op.stop_token();
    GANTRY_TRY(const auto loaded, store.load(archive, options));
    json::array list;
    for (const auto& image : loaded) {
        json::object entry;
        entry["id"] = image.id;
        json::array refs;
        for (const auto& ref : image.refs) refs.emplace_back(ref);
        entry["refs"] = std::move(refs);
        entry["size"] = image.size;
        list.push_back(std::move(entry));
    }
    json::object reply;
    reply["images"] = std::move(list);
    return base::to_text(reply);
}

} // namespace gantry::cri_native
