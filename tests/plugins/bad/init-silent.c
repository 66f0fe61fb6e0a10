/* init() fails and sets no error. */
#define BAD_INIT silent
#include "bad.h"

static gantry_status silent(void *self, gantry_error_sink *sink) {
    (void)self;
    (void)sink;
    return GANTRY_UNAVAILABLE;
}

BAD_PLUGIN("init-silent")
