/* add() takes its op and never completes it, cancelled or not. */
#define BAD_ADD never
#include "bad.h"

static gantry_status never(void *self, const gantry_request *request, gantry_op op) {
    (void)self;
    (void)request;
    (void)op;
    return GANTRY_OK;
}

BAD_PLUGIN("never-completes")
