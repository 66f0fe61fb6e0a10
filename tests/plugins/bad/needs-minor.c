/* Needs a host of ABI minor 999. */
#define GANTRY_NEEDS_MINOR 999
#include "bad.h"

BAD_PLUGIN("needs-minor")
