/* The capability table's struct_size ends inside its first member, though all are set. */
#define BAD_TABLE_SIZE (offsetof(gantry_network, add) + 4)
#include "bad.h"

BAD_PLUGIN("small-table")
