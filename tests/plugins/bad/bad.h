/* A sound gantry.network plugin, of which each file here breaks one thing: a file defines what is broken and ends with
 * BAD_PLUGIN(its name). Whatever it does not define stays sound. */
#ifndef GANTRY_TESTS_BAD_H
#define GANTRY_TESTS_BAD_H

#include <string.h>

#include "gantry/abi/draft/network.h"
#include "gantry/abi/plugin.h"

typedef struct bad_instance {
    gantry_plugin plugin;
    const gantry_host *host;
    const gantry_op_service *ops;
} bad_instance;

static bad_instance bad_self;

static inline gantry_str bad_str(const char *text) {
    gantry_str out = {text, strlen(text)};
    return out;
}

static inline void bad_complete(gantry_op op, const gantry_error *error) {
    gantry_reply reply = {sizeof(gantry_reply), 0, NULL, {"{}", 2}, error};
    bad_self.ops->complete(bad_self.ops->host, op, &reply);
}

static inline gantry_status bad_sound_op(void *self, const gantry_request *request, gantry_op op) {
    (void)self;
    (void)request;
    bad_complete(op, NULL);
    return GANTRY_OK;
}

static inline gantry_status bad_sound_init(void *self, gantry_error_sink *sink) {
    (void)self;
    (void)sink;
    bad_self.ops = (const gantry_op_service *)bad_self.host->get(bad_self.host, bad_str(GANTRY_SERVICE_OP));
    return GANTRY_OK;
}

static inline void bad_sound_stop(void *self) { (void)self; }

/* What a file may set before BAD_PLUGIN. */
#ifndef BAD_ADD
#define BAD_ADD bad_sound_op
#endif
#ifndef BAD_CHECK
#define BAD_CHECK bad_sound_op
#endif
#ifndef BAD_INIT
#define BAD_INIT bad_sound_init
#endif
#ifndef BAD_ID
#define BAD_ID(name) "dev.gantry.bad." name
#endif
#ifndef BAD_TABLE_SIZE
#define BAD_TABLE_SIZE sizeof(gantry_network)
#endif
#ifndef BAD_PLUGIN_SIZE
#define BAD_PLUGIN_SIZE sizeof(gantry_plugin)
#endif
#ifndef BAD_ENTRY_SIZE
#define BAD_ENTRY_SIZE sizeof(gantry_plugin_entry)
#endif
#ifndef BAD_CREATE_RESULT
#define BAD_CREATE_RESULT &bad_self.plugin
#endif
#ifndef BAD_CAPABILITY_RESULT
#define BAD_CAPABILITY_RESULT &bad_table
#endif
#ifndef BAD_NOTE
#define BAD_NOTE(name)                                                                                          \
    GANTRY_DESCRIPTOR_TEXT(bad_note, "{\"id\": \"" BAD_ID(name) "\", \"name\": \"bad-" name                     \
                                     "\", \"version\": \"1.0.0\", \"capabilities\": [\"" GANTRY_NETWORK "\"]}")
#endif

#define BAD_PLUGIN(name)                                                                                        \
    BAD_NOTE(name)                                                                                              \
    static gantry_network bad_table;                                                                            \
    static const void *bad_capability(void *self, gantry_str id) {                                              \
        (void)self;                                                                                             \
        return id.n == sizeof(GANTRY_NETWORK) - 1 && memcmp(id.p, GANTRY_NETWORK, id.n) == 0                     \
                   ? BAD_CAPABILITY_RESULT                                                                      \
                   : NULL;                                                                                      \
    }                                                                                                           \
    static const gantry_plugin *bad_create(uint32_t index, const gantry_host *host, gantry_error_sink *sink) {  \
        (void)index;                                                                                            \
        (void)sink;                                                                                             \
        bad_self.host = host;                                                                                   \
        bad_self.plugin.struct_size = (uint32_t)(BAD_PLUGIN_SIZE);                                              \
        bad_self.plugin.self = &bad_self;                                                                       \
        bad_self.plugin.init = &BAD_INIT;                                                                       \
        bad_self.plugin.capability = &bad_capability;                                                           \
        bad_self.plugin.stop = &bad_sound_stop;                                                                 \
        bad_self.plugin.destroy = &bad_sound_stop;                                                              \
        bad_table.struct_size = (uint32_t)(BAD_TABLE_SIZE);                                                     \
        bad_table.add = &BAD_ADD;                                                                               \
        bad_table.del = &bad_sound_op;                                                                          \
        bad_table.check = &BAD_CHECK;                                                                           \
        bad_table.status = &bad_sound_op;                                                                       \
        bad_table.gc = &bad_sound_op;                                                                           \
        return BAD_CREATE_RESULT;                                                                               \
    }                                                                                                           \
    static const gantry_note_header *bad_descriptor(uint32_t index) {                                           \
        return index == 0 ? bad_note_descriptor() : NULL;                                                       \
    }                                                                                                           \
    GANTRY_EXTERN_C GANTRY_EXPORT const gantry_plugin_entry *GANTRY_PLUGIN_MAIN(void) {                          \
        static const gantry_plugin_entry entry = {                                                              \
            (uint32_t)(BAD_ENTRY_SIZE), GANTRY_ABI_MAJOR, GANTRY_ABI_MINOR, 1, 0, &bad_descriptor,              \
            &bad_create};                                                                                       \
        return &entry;                                                                                          \
    }

#endif
