/* create() returns NULL and sets no error. */
#define BAD_CREATE_RESULT NULL
#include "bad.h"

BAD_PLUGIN("create-null")
