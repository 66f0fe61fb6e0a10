/* gantry_plugin_main returns NULL. */
#include "note.h"

BAD_RAW_NOTE(BAD_JSON("null-entry"), GANTRY_ABI_MAJOR, 0, BAD_DESC_SIZE(BAD_JSON("null-entry")),
             sizeof(BAD_JSON("null-entry")) - 1)

GANTRY_EXTERN_C GANTRY_EXPORT const gantry_plugin_entry *GANTRY_PLUGIN_MAIN(void) {
    return bad_note_descriptor() != NULL ? NULL : (const gantry_plugin_entry *)&bad_note;
}
