/* add() leaves the lane's thread in another network namespace. Needs root. */
#define _GNU_SOURCE
#define BAD_ADD wander
#include <errno.h>
#include <sched.h>

#include "bad.h"

static gantry_status wander(void *self, const gantry_request *request, gantry_op op) {
    (void)self;
    (void)request;
    if (unshare(CLONE_NEWNET) == 0) {
        bad_complete(op, NULL);
    } else {
        gantry_error error = {sizeof(gantry_error), GANTRY_PERMISSION, errno, 0, 0, bad_str("unshare(CLONE_NEWNET)"), {NULL, 0}};
        bad_complete(op, &error);
    }
    return GANTRY_OK;
}

BAD_PLUGIN("setns")
