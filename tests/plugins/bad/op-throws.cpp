// A C++ exception leaves add(): no barrier of the SDK stands before it.
#define BAD_ADD throwing
#include <stdexcept>

#include "bad.h"

static gantry_status throwing(void*, const gantry_request*, gantry_op) {
    throw std::runtime_error("thrown by add of bad-op-throws");
}

BAD_PLUGIN("op-throws")
