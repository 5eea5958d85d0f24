/*
 * run_renewals.c - telling on stderr of renewals that stand still
 *
 * Stderr may be a pipe that is full, or a terminal that was stopped: who writes
 * there can be kept waiting for ever, and the lease's thread must not be.  So
 * each is told by a thread of its own, one at a time; who asks meanwhile asks
 * again.  Sqlock ends without it.
 */
#include "run.h"

#include <pthread.h>
#include <stdatomic.h>

static atomic_bool is_telling;
static int64_t stale_ns_told; /* of whoever has set is_telling */

static void *tell(void *argument)
{
    (void)argument;
    if (stale_ns_told > 0)
        cli_note("the lease could not be renewed for %.1f s, trying again",
                 (double)stale_ns_told / 1e9);
    else
        cli_note("the lease is renewed again");
    atomic_store(&is_telling, false);
    return NULL;
}

bool run_renewals_tell(int64_t stale_ns)
{
    pthread_t thread;

    if (atomic_exchange(&is_telling, true))
        return false;
    stale_ns_told = stale_ns;
    if (pthread_create(&thread, NULL, tell, NULL) != 0) {
        atomic_store(&is_telling, false);
        return false;
    }
    (void)pthread_detach(thread);
    return true;
}
