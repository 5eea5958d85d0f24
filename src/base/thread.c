/*
 * thread.c - starting a thread that leaves the process's signals alone.
 */
#include "base/thread.h"

#include <signal.h>
#include <string.h>

#include "base/error.h"

int lk_thread_start(pthread_t *thread, void *(*run)(void *), void *argument,
                    sqlock_error *err)
{
    sigset_t all, before;
    int rc;

    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    rc = pthread_create(thread, NULL, run, argument);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc != 0)
        return lk_error(err, SQLOCK_ERESOURCE, "cannot start a thread: %s",
                        strerror(rc));
    return 0;
}
