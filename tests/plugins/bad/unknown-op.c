/* add() completes numbers that were never issued (0, all ones, its own with a bit flipped), then its own. */
#define BAD_ADD unknown
#include "bad.h"

static gantry_status unknown(void *self, const gantry_request *request, gantry_op op) {
    (void)self;
    (void)request;
    bad_complete(0, NULL);
    bad_complete(~(gantry_op)0, NULL);
    bad_complete(op ^ ((gantry_op)1 << 63), NULL);
    bad_complete(op, NULL);
    return GANTRY_OK;
}

BAD_PLUGIN("unknown-op")
