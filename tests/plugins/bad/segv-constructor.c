/* Crashes while it is mapped, before any function of the ABI is called. */
#include <signal.h>

#include "bad.h"

__attribute__((constructor)) static void crash(void) { raise(SIGSEGV); }

BAD_PLUGIN("segv-constructor")
