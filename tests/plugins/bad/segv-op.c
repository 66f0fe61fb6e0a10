/* Crashes in add(). */
#define BAD_ADD crash
#include "bad.h"

static gantry_status crash(void *self, const gantry_request *request, gantry_op op) {
    volatile int *volatile nowhere = NULL;
    (void)self;
    (void)request;
    (void)op;
    *nowhere = 1;
    return GANTRY_OK;
}

BAD_PLUGIN("segv-op")
