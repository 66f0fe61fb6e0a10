/* gantry.network/1-draft: connects a pod's network namespace. CNI 1.1 by function call.
 * Request bytes: JSON {"containerID", "ifname", "args": {"K8S_POD_NAMESPACE", "K8S_POD_NAME", "K8S_POD_UID", ...},
 * "runtimeConfig": {"portMappings": [{"hostPort", "containerPort", "protocol", "hostIP"}], "ips": [...]}}; fds[0] is the network
 * namespace (ADD, CHECK always; DEL when it still exists). Replies and errors are CNI's: `result` of spec 1.1.0 section 5,
 * error.detail carries {"cniCode": "N"}. key = containerID. The verbs behave as CNI 1.1.0 sections 2 and 3 say.
 */
#ifndef GANTRY_ABI_DRAFT_NETWORK_H
#define GANTRY_ABI_DRAFT_NETWORK_H

#include "../op.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GANTRY_NETWORK "gantry.network/1-draft"

typedef struct gantry_network {
    uint32_t struct_size;
    uint32_t reserved;
    /* Idempotent for the same containerID and ifname: a replay returns the first result. */
    gantry_op_fn add;
    /* Succeeds when nothing is left to delete; must work without the namespace. */
    gantry_op_fn del;
    gantry_op_fn check;
    /* {} -> {} when ADD could succeed now; an error (CNI code 50 or 51) says why not. */
    gantry_op_fn status;
    /* {"cni.dev/valid-attachments": [{"containerID", "ifname"}]}: frees everything of this instance that is not listed. Never runs
     * beside add. */
    gantry_op_fn gc;
} gantry_network;

#ifdef __cplusplus
}
#endif
#endif
