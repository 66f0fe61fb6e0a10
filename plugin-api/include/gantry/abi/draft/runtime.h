/* gantry.runtime/1-draft: runs pod sandboxes and containers.
 * Requests and replies are the messages of CRI v1 RuntimeService (proto/cri.proto), serialised; each op below names its
 * message pair by its own name (run_pod_sandbox: RunPodSandboxRequest -> RunPodSandboxResponse). Semantics follow the
 * comments of CRI's api.proto: every op is idempotent where CRI says so. key = the pod sandbox's UID on the calls that
 * change a pod, empty on status and list calls.
 */
#ifndef GANTRY_ABI_DRAFT_RUNTIME_H
#define GANTRY_ABI_DRAFT_RUNTIME_H

#include "../op.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GANTRY_RUNTIME "gantry.runtime/1-draft"

/* flags: the runtime calls its network itself (a CRI daemon does); without it the node binds gantry.network for it. */
#define GANTRY_RUNTIME_OWNS_NETWORK 1u

typedef struct gantry_runtime {
    uint32_t struct_size;
    uint32_t flags;
    gantry_op_fn version;
    gantry_op_fn run_pod_sandbox;
    gantry_op_fn stop_pod_sandbox;
    gantry_op_fn remove_pod_sandbox;
    gantry_op_fn pod_sandbox_status;
    gantry_op_fn list_pod_sandbox;
    gantry_op_fn create_container;
    gantry_op_fn start_container;
    gantry_op_fn stop_container;
    gantry_op_fn remove_container;
    gantry_op_fn list_containers;
    gantry_op_fn container_status;
    gantry_op_fn update_container_resources;
    gantry_op_fn reopen_container_log;
    gantry_op_fn exec_sync;
    /* ExecRequest in; fds: stdin, stdout, stderr, control, in this order, as the request asks for them (stdin and stderr
     * absent when false; with tty there is no stderr). control is a SOCK_SEQPACKET socket: JSON lines in from the caller
     * {"resize":{"width":W,"height":H}} or {"signal":N}. Completes when the process has ended and its output is drained,
     * with JSON {"exitCode": N}. */
    gantry_op_fn exec_stream;
    /* AttachRequest in, fds as for exec_stream. Completes when the streams end. */
    gantry_op_fn attach_stream;
    /* PortForwardRequest in, with one port; fds: one connected stream socket. Completes when both sides closed. */
    gantry_op_fn port_forward;
    gantry_op_fn container_stats;
    gantry_op_fn list_container_stats;
    gantry_op_fn status;
    /* GetEventsRequest in; streams ContainerEventResponse items until cancelled. Events are hints: the reader lists after
     * (re)subscribing. */
    gantry_op_fn get_container_events;
    gantry_op_fn update_runtime_config;
} gantry_runtime;

#ifdef __cplusplus
}
#endif
#endif
