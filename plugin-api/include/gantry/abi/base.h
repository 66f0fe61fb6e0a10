/* gantry plugin ABI: the rule, and the plain types everything else is made of.
 *
 * The ABI rule
 *   1. A released entity is never changed in place: not its name, layout, numbering or documented meaning
 *      (ownership, threading, nullability included). What is in abi/draft/ may change freely.
 *   2. Every struct that crosses starts with struct_size and grows only at its end; whoever allocates it sets
 *      struct_size, whoever reads or fills it touches at most that many bytes. New members are always optional.
 *   3. Anything else new is a new versioned id beside the old one (gantry.runtime/2 beside gantry.runtime/1).
 *   4. A deprecated id is served for at least four releases.
 *
 * Conventions: C11, fixed-width types, UTF-8, no bitfields, no bool, no long, no variadics. Times are nanoseconds
 * of CLOCK_MONOTONIC unless a name says otherwise. Pointers handed to a function are borrowed until it returns;
 * to keep is to copy. File descriptors are borrowed likewise: the receiver dups (F_DUPFD_CLOEXEC) what it keeps.
 * Nobody frees the other side's memory. No exception or longjmp may cross.
 *
 * Thread tags in the comments of every function:
 *   [lane]   on the instance's own serial lane thread; return within 1 ms, no blocking file, network or exec work
 *   [worker] on a thread of the host's executor; may block until the deadline of its op
 *   [any]    from any thread, concurrently
 */
#ifndef GANTRY_ABI_BASE_H
#define GANTRY_ABI_BASE_H

#include <stddef.h>
#include <stdint.h>

#define GANTRY_ABI_MAJOR 1
#define GANTRY_ABI_MINOR 0

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes with a length, UTF-8 where it is text, never NUL-terminated by contract. Frozen: it will not grow. */
typedef struct gantry_str {
    const char *p; /* may be NULL when n is 0 */
    uint64_t n;    /* bytes */
} gantry_str;

/* Outcome codes. Receivers treat a value they do not know as GANTRY_INTERNAL. */
typedef int32_t gantry_status;
#define GANTRY_OK 0
#define GANTRY_INVALID 1     /* the input is wrong; repeating it cannot help */
#define GANTRY_NOT_FOUND 2   /* the named object does not exist */
#define GANTRY_EXISTS 3      /* the named object exists with other content */
#define GANTRY_BUSY 4        /* in use, or a limit of concurrent work is reached; retry */
#define GANTRY_TIMEOUT 5     /* the deadline passed */
#define GANTRY_CANCELLED 6   /* the caller gave up */
#define GANTRY_UNAVAILABLE 7 /* a needed peer, process or device does not answer; retry */
#define GANTRY_PERMISSION 8  /* the kernel or a policy forbids it */
#define GANTRY_RESOURCE 9    /* out of space, memory, addresses, ids */
#define GANTRY_UNSUPPORTED 10 /* this plugin, host or kernel cannot do it */
#define GANTRY_INTERNAL 11   /* a fault of the callee itself */

/* One failure. Filled by the side that failed, on its own stack; the other side copies what it keeps before it
 * returns. message is never empty on failure: what failed, on which object, with which value, and what to do. */
typedef struct gantry_error {
    uint32_t struct_size;
    gantry_status code;
    int32_t sys_errno;       /* errno of the system call that failed, 0 if none did */
    int32_t retryable;       /* 1 if the same request may succeed later */
    uint64_t retry_after_ms; /* hint, 0 for none */
    gantry_str message;
    gantry_str detail; /* a JSON object of strings (for example "field", "path"), or empty */
} gantry_error;

/* Where a synchronous call puts its error. Success leaves it untouched; failure calls set exactly once. */
typedef struct gantry_error_sink gantry_error_sink;
struct gantry_error_sink {
    uint32_t struct_size;
    uint32_t reserved;
    void (*set)(gantry_error_sink *self, const gantry_error *error);
};

/* True when a table reaches member and the pointer there is set. */
#define GANTRY_HAS(table, member)                                                                              \
    ((table) != NULL &&                                                                                        \
     (table)->struct_size >= offsetof(__typeof__(*(table)), member) + sizeof((table)->member) &&               \
     (table)->member != NULL)

#ifdef __cplusplus
}
#endif
#endif
