/* The note promises gantry.network, capability() gives NULL. */
#define BAD_CAPABILITY_RESULT NULL
#include "bad.h"

BAD_PLUGIN("no-capability")
