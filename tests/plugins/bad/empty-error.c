/* add() fails with an error that has no message. */
#define BAD_ADD speechless
#include "bad.h"

static gantry_status speechless(void *self, const gantry_request *request, gantry_op op) {
    gantry_error error = {sizeof(gantry_error), GANTRY_UNAVAILABLE, 0, 0, 0, {NULL, 0}, {NULL, 0}};
    (void)self;
    (void)request;
    bad_complete(op, &error);
    return GANTRY_OK;
}

BAD_PLUGIN("empty-error")
