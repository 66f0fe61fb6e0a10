/* Crashes in init(). */
#define BAD_INIT crash
#include "bad.h"

static gantry_status crash(void *self, gantry_error_sink *sink) {
    volatile int *volatile nowhere = NULL;
    (void)self;
    (void)sink;
    *nowhere = 1;
    return GANTRY_OK;
}

BAD_PLUGIN("segv-init")
