/* gantry.image-gc/1-draft: the order in which unused images are removed. The core enforces; a policy only ranks.
 * JSON both ways; times are Unix seconds.
 */
#ifndef GANTRY_ABI_DRAFT_IMAGE_GC_H
#define GANTRY_ABI_DRAFT_IMAGE_GC_H

#include "../op.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GANTRY_IMAGE_GC "gantry.image-gc/1-draft"

typedef struct gantry_image_gc {
    uint32_t struct_size;
    uint32_t reserved;
    /* {"now", "fs": {"capacityBytes", "availableBytes"}, "images": [{"id", "refs", "sizeBytes", "firstSeen", "lastUsed"}]} (only images
     * that are neither in use nor pinned) -> {"remove": [{"id", "reason"}], "targetBytes"}: best candidate first; the core removes
     * until targetBytes are freed. */
    gantry_op_fn rank;
} gantry_image_gc;

#ifdef __cplusplus
}
#endif
#endif
