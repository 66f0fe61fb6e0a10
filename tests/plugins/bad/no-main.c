/* A sound note, but no gantry_plugin_main. */
#include "note.h"

BAD_RAW_NOTE(BAD_JSON("no-main"), GANTRY_ABI_MAJOR, 0, BAD_DESC_SIZE(BAD_JSON("no-main")), sizeof(BAD_JSON("no-main")) - 1)

const gantry_note_header *bad_no_main(void);
const gantry_note_header *bad_no_main(void) { return bad_note_descriptor(); }
