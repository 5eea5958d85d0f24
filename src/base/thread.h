/*
 * thread.h - threads of the library, their conditions, and mutexes that survive
 * a fork
 */
#ifndef LK_THREAD_H
#define LK_THREAD_H

#include <pthread.h>

#include "sqlock.h"

/* Start a thread with all signals blocked: they are for the application's
 * threads.  0, ERESOURCE. */
int lk_thread_start(pthread_t *thread, void *(*run)(void *), void *argument,
                    sqlock_error *err);

/* Initialize a condition that uses CLOCK_MONOTONIC. */
void lk_condition_init(pthread_cond_t *condition);

/* A static mutex of that name.  Another thread may have it at a fork: in the
 * child it is free again, so that the child can open connections of its own
 * (F17).  The data that it guards are as that thread left them: they have to be
 * of use even half changed, or of none in a child. */
#define LK_STATIC_MUTEX(name)                                                  \
    static pthread_mutex_t name;                                               \
    static void name##_free_in_child(void)                                     \
    {                                                                          \
        (name) = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;                   \
    }                                                                          \
    __attribute__((constructor)) static void name##_watch_forks(void)          \
    {                                                                          \
        (void)pthread_atfork(NULL, NULL, name##_free_in_child);                \
    }                                                                          \
    static pthread_mutex_t name = PTHREAD_MUTEX_INITIALIZER

#endif
