/* add() never returns, so the instance's lane stands still. */
#define BAD_ADD blocking
#include <unistd.h>

#include "bad.h"

static gantry_status blocking(void *self, const gantry_request *request, gantry_op op) {
    (void)self;
    (void)request;
    (void)op;
    while (pause() != 0) {}
    return GANTRY_OK;
}

BAD_PLUGIN("blocks-lane")
