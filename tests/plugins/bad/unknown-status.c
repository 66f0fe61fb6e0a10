/* add() returns a status that no ABI defines. */
#define BAD_ADD strange
#include "bad.h"

static gantry_status strange(void *self, const gantry_request *request, gantry_op op) {
    (void)self;
    (void)request;
    (void)op;
    return 4711;
}

BAD_PLUGIN("unknown-status")
