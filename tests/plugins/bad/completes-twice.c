/* add() completes its op twice, the second time with an error. */
#define BAD_ADD twice
#include "bad.h"

static gantry_status twice(void *self, const gantry_request *request, gantry_op op) {
    gantry_error error = {sizeof(gantry_error), GANTRY_INTERNAL, 0, 0, 0, bad_str("the second completion"), {NULL, 0}};
    (void)self;
    (void)request;
    bad_complete(op, NULL);
    bad_complete(op, &error);
    return GANTRY_OK;
}

BAD_PLUGIN("completes-twice")
