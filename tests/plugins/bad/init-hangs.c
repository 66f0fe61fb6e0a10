/* init() never returns. */
#define BAD_INIT hanging
#include <unistd.h>

#include "bad.h"

static gantry_status hanging(void *self, gantry_error_sink *sink) {
    (void)self;
    (void)sink;
    while (pause() != 0) {}
    return GANTRY_OK;
}

BAD_PLUGIN("init-hangs")
