/* add() forks a copy of the whole node that does not exec. The copy ends with its parent, or after 30 s. */
#define BAD_ADD fork_only
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "bad.h"

static gantry_status fork_only(void *self, const gantry_request *request, gantry_op op) {
    (void)self;
    (void)request;
    if (fork() == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        sleep(30);
        _exit(0);
    }
    bad_complete(op, NULL);
    return GANTRY_OK;
}

BAD_PLUGIN("forks")
