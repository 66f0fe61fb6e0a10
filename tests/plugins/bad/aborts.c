/* Calls abort() in add(). */
#define BAD_ADD crash
#include <stdlib.h>

#include "bad.h"

static gantry_status crash(void *self, const gantry_request *request, gantry_op op) {
    (void)self;
    (void)request;
    (void)op;
    abort();
}

BAD_PLUGIN("aborts")
