/*
 * thread.c - start threads that receive no signals, and initialize condition
 * variables that a step of the wall clock does not disturb
 */
#include "base/thread.h"

#include <signal.h>
#include <string.h>
#include <time.h>

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

int lk_cancel_defer(void)
{
    int before = PTHREAD_CANCEL_ENABLE;

    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    return before;
}

void lk_cancel_allow(int before)
{
    (void)pthread_setcancelstate(before, NULL);
}

void lk_condition_init(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;

    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_cond_init(condition, &attributes);
    (void)pthread_condattr_destroy(&attributes);
}
