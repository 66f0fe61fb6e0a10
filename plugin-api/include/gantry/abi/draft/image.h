/* gantry.image/1-draft: the images of a runtime.
 * Requests and replies are the messages of CRI v1 ImageService (proto/cri.proto), except load. Long ops report progress in
 * bytes per layer (`what` = the layer's digest).
 */
#ifndef GANTRY_ABI_DRAFT_IMAGE_H
#define GANTRY_ABI_DRAFT_IMAGE_H

#include "../op.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GANTRY_IMAGE "gantry.image/1-draft"

typedef struct gantry_image {
    uint32_t struct_size;
    uint32_t reserved;
    gantry_op_fn list_images;
    gantry_op_fn image_status;
    gantry_op_fn pull_image;
    gantry_op_fn remove_image;
    gantry_op_fn image_fs_info;
    /* Takes a docker-archive or OCI-layout tar (docker save, skopeo, umoci) from fds[0], a readable file. bytes: JSON
     * {"ref": "name for an archive that carries none, or empty"}. Reply: JSON {"images": [{"id": "sha256:...", "refs": [...],
     * "size": bytes}]}. All or nothing. */
    gantry_op_fn load;
} gantry_image;

#ifdef __cplusplus
}
#endif
#endif
