/* What the host offers an instance: services looked up by versioned id, exactly like capabilities.
 *
 * Each instance gets a gantry_host of its own, so that timers, fds, subscriptions and metrics it registered can be
 * revoked when it stops. Every service table carries `host`, to be passed back as first argument.
 */
#ifndef GANTRY_ABI_HOST_H
#define GANTRY_ABI_HOST_H

#include "op.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gantry_host gantry_host;
struct gantry_host {
    uint32_t struct_size;
    uint16_t abi_major;
    uint16_t abi_minor;
    /* The table of a service id, valid until the instance is destroyed; NULL if the host does not have it. [any] */
    const void *(*get)(const gantry_host *self, gantry_str service_id);
};

/* ---- log ---------------------------------------------------------------------------------------------------- */
#define GANTRY_SERVICE_LOG "gantry.log/1"
#define GANTRY_LOG_DEBUG 0
#define GANTRY_LOG_INFO 1
#define GANTRY_LOG_WARN 2
#define GANTRY_LOG_ERROR 3

typedef struct gantry_field { /* frozen: it will not grow */
    gantry_str key;
    gantry_str value;
} gantry_field;

typedef struct gantry_log_service {
    uint32_t struct_size;
    uint32_t reserved;
    const void *host;
    /* 1 if a line of this level would be written; ask before formatting an expensive one. [any] */
    int32_t (*enabled)(const void *host, int32_t level);
    /* One line. The host adds time, instance and, in an op, its pod and op fields. [any] */
    void (*write)(const void *host, int32_t level, gantry_str message, const gantry_field *fields, uint32_t count);
} gantry_log_service;

/* ---- metrics ------------------------------------------------------------------------------------------------ */
#define GANTRY_SERVICE_METRICS "gantry.metrics/1"
#define GANTRY_METRIC_COUNTER 0
#define GANTRY_METRIC_GAUGE 1
#define GANTRY_METRIC_HISTOGRAM 2 /* seconds; the host's fixed buckets */

typedef struct gantry_metrics_service {
    uint32_t struct_size;
    uint32_t reserved;
    const void *host;
    /* Defines a series family; only during init. name: [a-z_][a-z0-9_]*, exposed as gantry_plugin_NAME with label
     * instance. Returns a handle > 0, or 0 when the name is taken or malformed. [lane] */
    uint32_t (*define)(const void *host, int32_t kind, gantry_str name, gantry_str help);
    /* Adds to a counter, sets a gauge, observes into a histogram. label is a value for the label "key", or empty. [any] */
    void (*record)(const void *host, uint32_t metric, gantry_str label, double value);
} gantry_metrics_service;

/* ---- events ------------------------------------------------------------------------------------------------- */
#define GANTRY_SERVICE_EVENTS "gantry.events/1"

typedef void (*gantry_event_fn)(void *context, gantry_str topic, gantry_str key, gantry_str bytes);

typedef struct gantry_events_service {
    uint32_t struct_size;
    uint32_t reserved;
    const void *host;
    /* Publishes state to the node's bus. An unread event of the same topic and key is replaced: events carry the
     * latest state, never history. [any] */
    void (*publish)(const void *host, gantry_str topic, gantry_str key, gantry_str bytes);
    /* Calls fn on the lane for each event of topic from now on. Returns a handle > 0. [any] */
    uint64_t (*subscribe)(const void *host, gantry_str topic, gantry_event_fn fn, void *context);
    /* After return fn will not run again. [lane] */
    void (*unsubscribe)(const void *host, uint64_t subscription);
    /* Emits a Kubernetes Event about a pod (JSON: type, reason, message, pod {namespace, name, uid}). [any] */
    void (*emit)(const void *host, gantry_str event_json);
} gantry_events_service;

/* ---- timer, fd, executor ------------------------------------------------------------------------------------ */
#define GANTRY_SERVICE_TIMER "gantry.timer/1"
#define GANTRY_SERVICE_FD "gantry.fd/1"
#define GANTRY_SERVICE_EXECUTOR "gantry.executor/1"

typedef void (*gantry_task_fn)(void *context);
typedef void (*gantry_fd_fn)(void *context, int32_t fd, uint32_t events);

typedef struct gantry_timer_service {
    uint32_t struct_size;
    uint32_t reserved;
    const void *host;
    /* Runs fn once on the lane, delay_ns from now. Returns a handle > 0. [any] */
    uint64_t (*after)(const void *host, uint64_t delay_ns, gantry_task_fn fn, void *context);
    /* 1 if fn will not run. On the lane it is certain; elsewhere fn may be running. [any] */
    int32_t (*cancel)(const void *host, uint64_t timer);
} gantry_timer_service;

typedef struct gantry_fd_service {
    uint32_t struct_size;
    uint32_t reserved;
    const void *host;
    /* Watches fd (borrowed until unwatch) for EPOLLIN/EPOLLOUT, level-triggered; fn runs on the lane. Returns a
     * handle > 0, 0 on failure. [any] */
    uint64_t (*watch)(const void *host, int32_t fd, uint32_t events, gantry_fd_fn fn, void *context);
    /* After return fn will not run again. [lane] */
    void (*unwatch)(const void *host, uint64_t handle);
} gantry_fd_service;

typedef struct gantry_executor_service {
    uint32_t struct_size;
    uint32_t reserved;
    const void *host;
    /* Runs fn on a worker thread, where it may block. Tasks of one instance run in parallel up to its
     * maxConcurrency; those that were accepted go on while stop() waits for them. Returns GANTRY_BUSY past 4096 queued
     * tasks. [any] */
    gantry_status (*submit)(const void *host, gantry_task_fn fn, void *context);
    /* Runs fn on the lane, after what is queued there. [any] */
    void (*post)(const void *host, gantry_task_fn fn, void *context);
} gantry_executor_service;

/* ---- config, state ------------------------------------------------------------------------------------------ */
#define GANTRY_SERVICE_CONFIG "gantry.config/1"
#define GANTRY_SERVICE_STATE "gantry.state/1"

typedef struct gantry_config_service {
    uint32_t struct_size;
    uint32_t reserved;
    const void *host;
    gantry_str instance;      /* `name` of the plugin entry in NodeConfig */
    gantry_str node_name;     /* node.name */
    gantry_str node_instance; /* node.instance: every kernel object's name must derive from it */
    gantry_str state_dir;     /* private to this instance, survives reboots; exists, 0700 */
    gantry_str run_dir;       /* private to this instance, on tmpfs; exists, 0700 */
    gantry_str json;          /* validated config with defaults filled in; `{}` when none was given */
} gantry_config_service;

typedef struct gantry_state_service {
    uint32_t struct_size;
    uint32_t reserved;
    const void *host;
    /* Small durable values (<= 64 KiB) by key ([A-Za-z0-9._-]{1,128}). put replaces atomically (tmp + rename) and
     * survives kill -9 once it has returned; an empty value deletes. [worker] */
    gantry_status (*put)(const void *host, gantry_str key, gantry_str value, gantry_error_sink *error);
    /* Hands the value to fn before returning; GANTRY_NOT_FOUND if there is none. [worker] */
    gantry_status (*get)(const void *host, gantry_str key, void (*fn)(void *context, gantry_str value), void *context);
    /* Calls fn for each key. [worker] */
    void (*list)(const void *host, void (*fn)(void *context, gantry_str key), void *context);
} gantry_state_service;

/* ---- exec --------------------------------------------------------------------------------------------------- */
#define GANTRY_SERVICE_EXEC "gantry.exec/1"

typedef struct gantry_exec_request {
    uint32_t struct_size;
    uint32_t argc;
    const gantry_str *argv; /* argv[0] is an absolute path */
    const gantry_str *envp; /* NAME=value; the helper inherits nothing else */
    uint32_t envc;
    uint32_t fd_count;
    const int32_t *fds; /* become 0, 1, 2, ... in the helper; fd -1 is /dev/null */
    int64_t deadline_ns;
} gantry_exec_request;

/* wait_status as of waitpid(2); timed_out 1 if the deadline killed it. */
typedef void (*gantry_exit_fn)(void *context, int32_t wait_status, int32_t timed_out);

typedef struct gantry_exec_service {
    uint32_t struct_size;
    uint32_t reserved;
    const void *host;
    /* Starts a helper process in a cgroup of its own; at the deadline the whole cgroup is killed. fn runs once on the
     * lane. Returns its pid > 0, or a negated errno. [any] */
    int64_t (*spawn)(const void *host, const gantry_exec_request *request, gantry_exit_fn fn, void *context);
    /* Kills the helper's cgroup; fn still runs. [any] */
    void (*kill)(const void *host, int64_t pid);
} gantry_exec_service;

/* ---- peer, trace -------------------------------------------------------------------------------------------- */
#define GANTRY_SERVICE_PEER "gantry.peer/1"
#define GANTRY_SERVICE_TRACE "gantry.trace/1"

/* reply is borrowed until fn returns; reply->error tells failure. */
typedef void (*gantry_reply_fn)(void *context, const gantry_reply *reply);

typedef struct gantry_peer_service {
    uint32_t struct_size;
    uint32_t reserved;
    const void *host;
    /* Calls operation `op` (its member name, for example "add") of the instance bound for `capability`, which must be
     * among the descriptor's `requires`. fn runs once, on the caller's lane; not after stop() has returned. Never calls
     * back before returning an error: any status but GANTRY_OK means fn will not run. [any] */
    gantry_status (*call)(const void *host, gantry_str capability, gantry_str op, const gantry_request *request,
                          int64_t deadline_ns, gantry_reply_fn fn, void *context, gantry_error_sink *error);
} gantry_peer_service;

typedef struct gantry_trace_service {
    uint32_t struct_size;
    uint32_t reserved;
    const void *host;
    /* Marks a step of an op: it shows in `gantry explain` and in the op's trace with the time since the step before. [any] */
    void (*step)(const void *host, gantry_op op, gantry_str name);
} gantry_trace_service;

#ifdef __cplusplus
}
#endif
#endif
