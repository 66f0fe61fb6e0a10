/* Has the id of bad-sound.so. */
#define BAD_ID(name) "dev.gantry.bad.sound"
#include "bad.h"

BAD_PLUGIN("duplicate-id")
