/* gantry.resources/1-draft: the node's cgroup tree, capacity and usage.
 * The only creator of the kubepods root, QoS tiers and pod cgroups, for every runtime; runtimes create below `cgroupParent`.
 * JSON both ways. Quantities are plain integers: milliCPU, bytes. A missing or -1 limit means unlimited.
 */
#ifndef GANTRY_ABI_DRAFT_RESOURCES_H
#define GANTRY_ABI_DRAFT_RESOURCES_H

#include "../op.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GANTRY_RESOURCES "gantry.resources/1-draft"

typedef struct gantry_resources {
    uint32_t struct_size;
    uint32_t reserved;
    /* {"uid", "qos": "Guaranteed|Burstable|BestEffort", "resources": {"cpuRequestMilli", "cpuLimitMilli", "memoryRequest",
     * "memoryLimit", "pidsLimit"}} -> {"cgroupParent": "/gantry-main/kubepods/..."}: the path below each hierarchy's
     * mount point. Creates or updates. key = uid. */
    gantry_op_fn ensure_pod;
    /* {"uid"}: kills what is left inside, then removes the pod cgroup. Succeeds when there is none. key = uid. */
    gantry_op_fn remove_pod;
    /* {} -> {"pods": [{"uid", "cgroupParent"}]}: every pod cgroup of this node instance. */
    gantry_op_fn list_pods;
    /* {} -> {"capacity": {"cpuMilli", "memory", "pods", "ephemeralStorage"}, "allocatable": {same}, "cgroup": {"version": 1|2,
     * "driver": "cgroupfs|systemd"}} */
    gantry_op_fn capacity;
    /* {} or {"uid"} -> {"node": {"cpuNanos", "memoryWorkingSet", ...}, "pods": [{"uid", "cpuNanos", "memoryUsage", "memoryWorkingSet",
     * "pids", "oomKills"}]} */
    gantry_op_fn stats;
} gantry_resources;

#ifdef __cplusplus
}
#endif
#endif
