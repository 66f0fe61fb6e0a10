/* The entry's struct_size ends before create. */
#define BAD_ENTRY_SIZE offsetof(gantry_plugin_entry, create)
#include "bad.h"

BAD_PLUGIN("small-entry")
