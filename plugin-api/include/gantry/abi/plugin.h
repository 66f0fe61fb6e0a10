/* The entry of a plugin library, its descriptor, and the life of an instance.
 *
 * A library exports exactly one symbol, gantry_plugin_main. Everything a host must know before it maps the library
 * is in an ELF note, one per plugin, that GANTRY_DESCRIPTOR writes: ABI numbers and the descriptor as JSON:
 *   id           reverse-DNS name, unique on a node                       string, required
 *   name         short name that NodeConfig's `use:` takes                string, required
 *   version      of the plugin, semver                                    string, required
 *   vendor, license, url, description                                     strings
 *   capabilities ids this plugin offers, highest first                    array of strings, required
 *   requires     capability ids of peers it calls                         array of strings
 *   services     host service ids it cannot work without                  array of strings
 *   operations   for a vendor's own capability ids: the members of its    object of arrays of strings
 *                table, in order, so that peers can call them by name
 *   traits       what a host should know before it loads the plugin:      array of strings
 *                "owns-network" (a runtime with GANTRY_RUNTIME_OWNS_NETWORK)
 *   maxConcurrency  ops the host keeps open at once, default 64           integer
 *   config       JSON Schema of its config (subset: type, properties, required, additionalProperties, enum, items,
 *                minimum, maximum, pattern, default)                      object
 *
 *   state        reached by                  legal calls of the host
 *   Created      create()                    init, destroy
 *   Initialised  init()                      capability, config_check, adopt, activate, stop
 *   Active       activate()                  ops of every capability, config_check, config_apply, export_state, drain
 *   Draining     drain()                     cancel callbacks, stop; no new op
 *   Stopped      stop()                      destroy
 * Host services may be called from init() on until stop() returns, not from create(). All members but ops run on the
 * instance's lane, one at a time; a start that does not return is found by the host's watchdog.
 */
#ifndef GANTRY_ABI_PLUGIN_H
#define GANTRY_ABI_PLUGIN_H

#include "host.h"
#include "op.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GANTRY_NOTE_NAME "gantry"
#define GANTRY_NOTE_TYPE 1
#define GANTRY_NOTE_SECTION ".note.gantry.plugin"

/* The start of the ELF note's descriptor; json_size bytes of JSON follow, then padding to 4 bytes. Little endian. */
typedef struct gantry_note_header {
    uint16_t abi_major;
    uint16_t abi_minor;   /* of the headers it was built with */
    uint16_t needs_minor; /* lowest host minor it can work with */
    uint16_t reserved;
    uint32_t json_size;
} gantry_note_header;

typedef struct gantry_plugin {
    uint32_t struct_size;
    uint32_t reserved;
    void *self; /* first argument of every function below and of every op */
    /* Gets ready: reads config and state, takes host services. Calls no peer. [lane] */
    gantry_status (*init)(void *self, gantry_error_sink *error);
    /* The function table for a capability id of the descriptor (for example gantry_runtime*), valid until destroy;
     * NULL if it is not offered. [lane] */
    const void *(*capability)(void *self, gantry_str id);
    /* Starts work of its own (watches, timers). Ops arrive from now on. Optional. [lane] */
    gantry_status (*activate)(void *self, gantry_error_sink *error);
    /* No new ops come; finish or cancel the open ones until deadline_ns. Optional. [lane] */
    void (*drain)(void *self, int64_t deadline_ns);
    /* On return no thread of this instance runs and no callback of it is pending. Optional. [lane] */
    void (*stop)(void *self);
    /* Frees the instance. [lane] */
    void (*destroy)(void *self);
    /* Judges a new config document without effect. Optional. [lane] */
    gantry_status (*config_check)(void *self, gantry_str json, gantry_error_sink *error);
    /* Takes a config that config_check accepted; all or nothing. Optional. [lane] */
    gantry_status (*config_apply)(void *self, gantry_str json, gantry_error_sink *error);
    /* Hand-over: export_state gives bytes and fds of the old instance, adopt takes them in the new one, before its
     * activate. Optional, both or neither. */
    gantry_op_fn export_state;
    gantry_op_fn adopt;
} gantry_plugin;

typedef struct gantry_plugin_entry {
    uint32_t struct_size;
    uint16_t abi_major;
    uint16_t abi_minor;
    uint32_t plugin_count;
    uint32_t reserved;
    /* The same bytes as the index-th note: header, then JSON. [any] */
    const gantry_note_header *(*descriptor)(uint32_t index);
    /* Makes one instance of the index-th plugin. host outlives the instance and must not be called yet. The result
     * stays owned by the plugin until destroy. NULL after error->set. [lane] */
    const gantry_plugin *(*create)(uint32_t index, const gantry_host *host, gantry_error_sink *error);
} gantry_plugin_entry;

/* The library's one exported symbol. Pure; may be called repeatedly. [any] */
typedef const gantry_plugin_entry *(*gantry_plugin_main_fn)(void);
#define GANTRY_PLUGIN_MAIN gantry_plugin_main

#if defined(__GNUC__)
#define GANTRY_EXPORT __attribute__((visibility("default")))
#else
#define GANTRY_EXPORT
#endif

#ifdef __cplusplus
#define GANTRY_EXTERN_C extern "C"
#else
#define GANTRY_EXTERN_C extern
#endif

/* Raise before including this header when the plugin needs a member that came with a later minor. */
#ifndef GANTRY_NEEDS_MINOR
#define GANTRY_NEEDS_MINOR 0
#endif

/* Writes the note `symbol` from a JSON object given as bare tokens:
 *   GANTRY_DESCRIPTOR(my_note, {"id": "com.acme.net", "name": "acme-net", ...})
 * and defines symbol##_descriptor() that returns it. */
#define GANTRY_DESCRIPTOR(symbol, ...) GANTRY_DESCRIPTOR_TEXT(symbol, #__VA_ARGS__)
#define GANTRY_DESCRIPTOR_TEXT(symbol, text)                                                                    \
    static const struct {                                                                                       \
        uint32_t name_size, desc_size, type;                                                                    \
        char name[8];                                                                                           \
        gantry_note_header header;                                                                              \
        char json[(sizeof(text) + 3) / 4 * 4];                                                                  \
    } symbol __attribute__((used, section(GANTRY_NOTE_SECTION), aligned(4))) = {                                \
        sizeof(GANTRY_NOTE_NAME),                                                                               \
        (uint32_t)(sizeof(gantry_note_header) + (sizeof(text) + 3) / 4 * 4),                                    \
        GANTRY_NOTE_TYPE,                                                                                       \
        GANTRY_NOTE_NAME,                                                                                       \
        {GANTRY_ABI_MAJOR, GANTRY_ABI_MINOR, GANTRY_NEEDS_MINOR, 0, (uint32_t)(sizeof(text) - 1)},              \
        text};                                                                                                  \
    static inline const gantry_note_header *symbol##_descriptor(void) { return &(symbol).header; }

#ifdef __cplusplus
}
#endif
#endif
