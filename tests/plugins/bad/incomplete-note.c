/* The note is JSON, but without the required "version" and "capabilities". */
#include "gantry/abi/plugin.h"
#define BAD_NOTE(name)                                                                                          \
    GANTRY_DESCRIPTOR_TEXT(bad_note, "{\"id\": \"dev.gantry.bad." name "\", \"name\": \"bad-" name "\"}")
#include "bad.h"

BAD_PLUGIN("incomplete-note")
