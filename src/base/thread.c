/*
 * thread.c - start threads that receive no signals, and initialize condition
 * variables that a step of the wall clock does not disturb
 */
#include "base/thread.h"

#include <signal.h>
#include <time.h>

#include "base/error.h"

/* A thread's stack is as large as the limit of the process's (ulimit -s), which
 * may be too small for a client library. */
#define STACK_MIN ((size_t)256 * 1024)

int lk_thread_start(pthread_t *thread, void *(*run)(void *), void *argument,
                    sqlock_error *err)
{
    sigset_t all, before;
    pthread_attr_t attributes;
    size_t size = 0;
    int rc;

    (void)pthread_attr_init(&attributes);
    (void)pthread_attr_getstacksize(&attributes, &size);
    if (size < STACK_MIN)
        (void)pthread_attr_setstacksize(&attributes, STACK_MIN);
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    rc = pthread_create(thread, &attributes, run, argument);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)pthread_attr_destroy(&attributes);
    if (rc != 0)
        return lk_error_limit(err, "cannot start a thread", rc);
    return 0;
}

static bool is_pending(int number)
{
    sigset_t pending;

    return sigpending(&pending) == 0 && sigismember(&pending, number) == 1;
}

void lk_signal_hold(struct lk_held_signal *held, int number)
{
    sigset_t one;

    held->number = number;
    (void)sigemptyset(&one);
    (void)sigaddset(&one, number);
    (void)pthread_sigmask(SIG_BLOCK, &one, &held->before);
    /* A signal that was pending before is left alone. */
    held->was_pending =
        sigismember(&held->before, number) == 1 && is_pending(number);
}

void lk_signal_release(const struct lk_held_signal *held)
{
    static const struct timespec at_once = {0, 0};
    sigset_t one;

    if (!held->was_pending && is_pending(held->number)) {
        (void)sigemptyset(&one);
        (void)sigaddset(&one, held->number);
        (void)sigtimedwait(&one, NULL, &at_once);
    }
    (void)pthread_sigmask(SIG_SETMASK, &held->before, NULL);
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
