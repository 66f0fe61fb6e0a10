/* The note's text is not JSON. */
#include "gantry/abi/plugin.h"
#define BAD_NOTE(name) GANTRY_DESCRIPTOR_TEXT(bad_note, "{\"id\": \"dev.gantry.bad." name "\", \"name\": ]]} \377\376")
#include "bad.h"

BAD_PLUGIN("garbled-note")
