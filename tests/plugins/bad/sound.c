/* Breaks nothing: the control of the others. */
#include "bad.h"

BAD_PLUGIN("sound")
