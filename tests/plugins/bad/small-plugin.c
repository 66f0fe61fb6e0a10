/* The instance's struct_size ends before capability, which is required. */
#define BAD_PLUGIN_SIZE offsetof(gantry_plugin, capability)
#include "bad.h"

BAD_PLUGIN("small-plugin")
