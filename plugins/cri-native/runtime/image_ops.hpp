// CRI's ImageService over the image store.
#pragma once

#include <string>
#include <string_view>

#include "gantry/sdk/op.hpp"
#include "plugins/cri-native/images/image_store.hpp"
#include "proto/cri.pb.h"

namespace gantry::cri_native {

/// What a request of the service gives. All [worker].
result<runtime::v1::ListImagesResponse> list_images(images::image_store& store,
                                                    const runtime::v1::ListImagesRequest& request);
/// An image that is not there gives a response without image.
result<runtime::v1::ImageStatusResponse> image_status(images::image_store& store,
                                                      const runtime::v1::ImageStatusRequest& request);
/// Succeeds for an image that is there. Registries are not spoken to: images come by load.
result<runtime::v1::PullImageResponse> pull_image(images::image_store& store,
                                                  const runtime::v1::PullImageRequest& request);
result<runtime::v1::RemoveImageResponse> remove_image(images::image_store& store,
                                                      const runtime::v1::RemoveImageRequest& request);
result<runtime::v1::ImageFsInfoResponse> image_fs_info(images::image_store& store,
                                                       const runtime::v1::ImageFsInfoRequest& request);

/// The op `load` of abi/draft/image.h: JSON in, JSON out, the archive behind the descriptor.
result<std::string> load_images(images::image_store& store, std::string_view json, int archive, const sdk::op& op);

} // namespace gantry::cri_native
