/*
 * thread.h - starting a thread of the library, and what it waits on
 */
#ifndef LK_THREAD_H
#define LK_THREAD_H

#include <pthread.h>

#include "sqlock.h"

/* All signals blocked in it: they are for the application's threads.
 * 0, ERESOURCE. */
int lk_thread_start(pthread_t *thread, void *(*run)(void *), void *argument,
                    sqlock_error *err);

/* Its deadlines are points of CLOCK_MONOTONIC. */
void lk_condition_init(pthread_cond_t *condition);

#endif
