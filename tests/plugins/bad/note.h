/* A note of which every number can be wrong. desc: bytes that the note claims for its descriptor; json: the same for JSON. */
#ifndef GANTRY_TESTS_BAD_NOTE_H
#define GANTRY_TESTS_BAD_NOTE_H

#include "gantry/abi/plugin.h"

#define BAD_RAW_NOTE(text, major, needs, desc, json_bytes)                                                      \
    static const struct {                                                                                       \
        uint32_t name_size, desc_size, type;                                                                    \
        char name[8];                                                                                           \
        gantry_note_header header;                                                                              \
        char json[(sizeof(text) + 3) / 4 * 4];                                                                  \
    } bad_note __attribute__((used, section(GANTRY_NOTE_SECTION), aligned(4))) = {                              \
        sizeof(GANTRY_NOTE_NAME),                                                                               \
        (uint32_t)(desc),                                                                                       \
        GANTRY_NOTE_TYPE,                                                                                       \
        GANTRY_NOTE_NAME,                                                                                       \
        {major, GANTRY_ABI_MINOR, needs, 0, (uint32_t)(json_bytes)},                                            \
        text};                                                                                                  \
    static inline const gantry_note_header *bad_note_descriptor(void) { return &bad_note.header; }

#define BAD_JSON(name)                                                                                          \
    "{\"id\": \"dev.gantry.bad." name "\", \"name\": \"bad-" name                                               \
    "\", \"version\": \"1.0.0\", \"capabilities\": [\"gantry.network/1-draft\"]}"
#define BAD_DESC_SIZE(text) (sizeof(gantry_note_header) + (sizeof(text) + 3) / 4 * 4)

#endif
