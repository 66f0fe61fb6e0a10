/* add() ignores cancellation and deadline; the op is completed, long abandoned, when check() is called. */
#define BAD_ADD keep
#define BAD_CHECK complete_kept
#include "bad.h"

static gantry_op kept;

static gantry_status keep(void *self, const gantry_request *request, gantry_op op) {
    (void)self;
    (void)request;
    kept = op;
    return GANTRY_OK;
}

static gantry_status complete_kept(void *self, const gantry_request *request, gantry_op op) {
    (void)self;
    (void)request;
    bad_complete(kept, NULL);
    bad_complete(op, NULL);
    return GANTRY_OK;
}

BAD_PLUGIN("completes-late")
