/* gantry.pod-source/1-draft: where a node learns which pods it shall run.
 * Pods are Kubernetes v1 Pod objects as JSON, complete with metadata.uid.
 */
#ifndef GANTRY_ABI_DRAFT_POD_SOURCE_H
#define GANTRY_ABI_DRAFT_POD_SOURCE_H

#include "../op.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GANTRY_POD_SOURCE "gantry.pod-source/1-draft"

typedef struct gantry_pod_source {
    uint32_t struct_size;
    uint32_t reserved;
    /* {} -> items {"type": "ADD|UPDATE|REMOVE", "pod": {...}} (REMOVE needs only metadata), {"type": "SYNCED"} once after the
     * first complete listing, and {"type": "FAULT", "object": "where it comes from", "message"} for input that was refused
     * (message empty: the fault is gone). The stream starts with the whole present state and runs until cancelled.
     * A pod that is gone when the watch is renewed counts as removed once SYNCED has come. */
    gantry_op_fn watch;
} gantry_pod_source;

#ifdef __cplusplus
}
#endif
#endif
