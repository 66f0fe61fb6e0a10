/* add() completes its op and then says it was not taken. */
#define BAD_ADD refuse
#include "bad.h"

static gantry_status refuse(void *self, const gantry_request *request, gantry_op op) {
    (void)self;
    (void)request;
    bad_complete(op, NULL);
    return GANTRY_BUSY;
}

BAD_PLUGIN("refuses-completed")
