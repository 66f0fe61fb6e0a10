/* Operations: the one form in which work crosses the ABI, whatever the capability.
 *
 * The host calls a gantry_op_fn on the instance's lane. Returning GANTRY_OK means the operation was taken, and
 * obliges the plugin to complete it exactly once, from any thread, at any later time or before returning. Any other
 * status means it was not taken: the plugin must not complete it, and has set no state for it.
 *
 * A gantry_op is a generation-checked number, not a pointer: completing twice, late, or with a number that was
 * never issued is logged as misbehaviour of the plugin and has no other effect.
 *
 * Typical sequence: op_fn -> (progress | item)* -> complete. When the deadline passes, or the caller gives up, the
 * cancel callback runs; the plugin still owes its completion (usually GANTRY_CANCELLED), but nobody waits for it
 * longer than a grace period: the op is then abandoned and counted against the plugin.
 */
#ifndef GANTRY_ABI_OP_H
#define GANTRY_ABI_OP_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef uint64_t gantry_op; /* 0 is never a valid operation */

typedef struct gantry_request {
    uint32_t struct_size;
    uint32_t fd_count;
    const int32_t *fds; /* borrowed until the op_fn returns */
    gantry_str key;     /* the host runs ops with the same non-empty key one after another (pod UID, volume id) */
    gantry_str bytes;   /* payload in the capability's encoding; borrowed until the op_fn returns */
} gantry_request;

typedef struct gantry_reply {
    uint32_t struct_size;
    uint32_t fd_count;
    const int32_t *fds; /* borrowed until complete()/item() returns */
    gantry_str bytes;
    const gantry_error *error; /* NULL on success */
} gantry_reply;

typedef struct gantry_progress {
    uint32_t struct_size;
    uint32_t reserved;
    uint64_t done;  /* in the op's own unit (bytes, entries) */
    uint64_t total; /* 0 when not known */
    gantry_str what; /* what the figures count, for people: a layer's digest, a step's name */
} gantry_progress;

/* self: the instance that create() returned. [lane] */
typedef gantry_status (*gantry_op_fn)(void *self, const gantry_request *request, gantry_op op);

/* Runs when op is cancelled or its deadline passes, at most once, never after complete() has returned. [lane] */
typedef void (*gantry_cancel_fn)(void *context, gantry_op op);

#define GANTRY_SERVICE_OP "gantry.op/1"

typedef struct gantry_op_service {
    uint32_t struct_size;
    uint32_t reserved;
    const void *host; /* pass as first argument */
    /* Ends the operation. The host copies bytes and dups fds before it returns. [any] */
    void (*complete)(const void *host, gantry_op op, const gantry_reply *reply);
    /* One element of a streaming operation (a watch). Blocks while the host's bounded queue for this op is full;
     * returns GANTRY_CANCELLED once nobody listens any more. error in the reply is ignored. [any] */
    gantry_status (*item)(const void *host, gantry_op op, const gantry_reply *reply);
    /* Latest progress; older reports may be dropped. [any] */
    void (*progress)(const void *host, gantry_op op, const gantry_progress *progress);
    /* Absolute deadline in ns of CLOCK_MONOTONIC; INT64_MAX when there is none. [any] */
    int64_t (*deadline_ns)(const void *host, gantry_op op);
    /* 1 once cancelled, past the deadline, or unknown. [any] */
    int32_t (*is_cancelled)(const void *host, gantry_op op);
    /* Registers the cancel callback, replacing an earlier one; fn NULL removes it. If op is cancelled already, fn is
     * queued to the lane at once. [any] */
    void (*on_cancel)(const void *host, gantry_op op, gantry_cancel_fn fn, void *context);
} gantry_op_service;

#ifdef __cplusplus
}
#endif
#endif
