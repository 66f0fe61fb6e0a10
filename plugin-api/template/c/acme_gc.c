/* acme-gc: an image GC policy to start from, in plain C. It never asks for an image to be removed.
 *
 * Everything the ABI demands is here: the note, the one exported function, an instance with its life, a capability table,
 * an operation that is completed exactly once, errors with a message.
 */
#include <stdlib.h>
#include <string.h>

#include "gantry/abi/draft/image_gc.h"
#include "gantry/abi/plugin.h"

GANTRY_DESCRIPTOR(acme_gc_note, {
    "id": "com.example.acme-gc",
    "name": "acme-gc",
    "version": "1.0.0",
    "vendor": "Example Ltd",
    "license": "Apache-2.0",
    "description": "Keeps every image",
    "capabilities": ["gantry.image-gc/1-draft"]
})

typedef struct acme_gc {
    gantry_plugin plugin; /* what the host sees */
    const gantry_host *host;
    const gantry_op_service *ops;
    const gantry_log_service *log;
} acme_gc;

static gantry_str text(const char *literal) {
    gantry_str out = {literal, strlen(literal)};
    return out;
}

static gantry_status fail(gantry_error_sink *sink, gantry_status code, const char *message) {
    gantry_error error = {0};
    error.struct_size = sizeof(error);
    error.code = code;
    error.message = text(message);
    sink->set(sink, &error);
    return code;
}

/* {"now", "fs", "images"} -> {"remove", "targetBytes"} */
static gantry_status rank(void *self, const gantry_request *request, gantry_op op) {
    const acme_gc *gc = self;
    gantry_reply reply = {0};
    (void)request;
    reply.struct_size = sizeof(reply);
    reply.bytes = text("{\"remove\": [], \"targetBytes\": 0}");
    gc->ops->complete(gc->ops->host, op, &reply);
    return GANTRY_OK;
}

static const gantry_image_gc table = {sizeof(gantry_image_gc), 0, rank};

static gantry_status init(void *self, gantry_error_sink *error) {
    acme_gc *gc = self;
    gc->ops = gc->host->get(gc->host, text(GANTRY_SERVICE_OP));
    if (gc->ops == NULL) return fail(error, GANTRY_UNSUPPORTED, "acme-gc: this gantry has no " GANTRY_SERVICE_OP);
    gc->log = gc->host->get(gc->host, text(GANTRY_SERVICE_LOG));
    if (gc->log != NULL) gc->log->write(gc->log->host, GANTRY_LOG_INFO, text("ready: no image will be removed"), NULL, 0);
    return GANTRY_OK;
}

static const void *capability(void *self, gantry_str id) {
    (void)self;
    return id.n == strlen(GANTRY_IMAGE_GC) && memcmp(id.p, GANTRY_IMAGE_GC, id.n) == 0 ? &table : NULL;
}

static void destroy(void *self) { free(self); }

static const gantry_plugin *create(uint32_t index, const gantry_host *host, gantry_error_sink *error) {
    acme_gc *gc = calloc(1, sizeof(*gc));
    (void)index;
    if (gc == NULL) {
        fail(error, GANTRY_RESOURCE, "acme-gc: out of memory");
        return NULL;
    }
    gc->host = host; /* not to be called before init */
    gc->plugin.struct_size = sizeof(gc->plugin);
    gc->plugin.self = gc;
    gc->plugin.init = init;
    gc->plugin.capability = capability;
    gc->plugin.destroy = destroy;
    return &gc->plugin;
}

static const gantry_note_header *descriptor(uint32_t index) { return index == 0 ? acme_gc_note_descriptor() : NULL; }

GANTRY_EXPORT const gantry_plugin_entry *GANTRY_PLUGIN_MAIN(void) {
    static const gantry_plugin_entry entry = {
        sizeof(gantry_plugin_entry), GANTRY_ABI_MAJOR, GANTRY_ABI_MINOR, 1, 0, descriptor, create};
    return &entry;
}
