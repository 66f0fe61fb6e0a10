/* Has no ELF note; descriptor() alone does not count. */
#include <stddef.h>

#include "gantry/abi/plugin.h"
#define BAD_NOTE(name) static inline const gantry_note_header *bad_note_descriptor(void) { return NULL; }
#include "bad.h"

BAD_PLUGIN("no-note")
