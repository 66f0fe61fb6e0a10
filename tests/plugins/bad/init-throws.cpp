// A C++ exception leaves init(): no barrier of the SDK stands before it.
#define BAD_INIT throwing
#include <stdexcept>

#include "bad.h"

static gantry_status throwing(void*, gantry_error_sink*) { throw std::runtime_error("thrown by init of bad-init-throws"); }

BAD_PLUGIN("init-throws")
