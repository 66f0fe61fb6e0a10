/* The note claims more JSON than its descriptor holds. */
#include "note.h"
#define BAD_NOTE(name)                                                                                          \
    BAD_RAW_NOTE(BAD_JSON(name), GANTRY_ABI_MAJOR, 0, BAD_DESC_SIZE(BAD_JSON(name)), 0x7fffffff)
#include "bad.h"

BAD_PLUGIN("note-json-size")
