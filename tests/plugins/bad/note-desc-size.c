/* The note claims a descriptor that reaches far beyond its section. */
#include "note.h"
#define BAD_NOTE(name)                                                                                          \
    BAD_RAW_NOTE(BAD_JSON(name), GANTRY_ABI_MAJOR, 0, 0xfffffff0u, sizeof(BAD_JSON(name)) - 1)
#include "bad.h"

BAD_PLUGIN("note-desc-size")
