/* Built for ABI major 99. */
#include "note.h"
#define BAD_NOTE(name) BAD_RAW_NOTE(BAD_JSON(name), 99, 0, BAD_DESC_SIZE(BAD_JSON(name)), sizeof(BAD_JSON(name)) - 1)
#include "bad.h"

BAD_PLUGIN("abi-major")
