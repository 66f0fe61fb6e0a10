/* Calls exit() in add(). */
#define BAD_ADD leave
#include <stdlib.h>

#include "bad.h"

static gantry_status leave(void *self, const gantry_request *request, gantry_op op) {
    (void)self;
    (void)request;
    (void)op;
    exit(0);
}

BAD_PLUGIN("exits")
