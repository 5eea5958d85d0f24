/*
 * thread.h - start threads, and initialize condition variables and mutexes that
 * can be used after a fork
 */
#ifndef LK_THREAD_H
#define LK_THREAD_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>

#include "sqlock.h"

/* Start a thread with all signals blocked, since signals are for the
 * application's threads.  Return 0, or SQLOCK_ERESOURCE if it cannot be
 * started. */
int lk_thread_start(pthread_t *thread, void *(*run)(void *), void *argument,
                    sqlock_error *err);

/* A signal that the kernel sends to the thread whose system call fails. */
struct lk_held_signal {
    int number;
    bool was_pending;
    sigset_t before;
};

/* Keep such a signal away from this thread during a call of another library,
 * and discard it afterwards, if it came: a library must not change what signals
 * do to the program.  This takes up to four system calls. */
void lk_signal_hold(struct lk_held_signal *held, int number);
void lk_signal_release(const struct lk_held_signal *held);

/* Let pthread_cancel() have no effect on this thread before lk_cancel_allow().
 * Where threads wait for one another, or hold a mutex while they sleep, one
 * that ended on the way would keep the others there for ever. */
int lk_cancel_defer(void);
void lk_cancel_allow(int before);

/* Initialize a condition variable that waits by CLOCK_MONOTONIC. */
void lk_condition_init(pthread_cond_t *condition);

/* Free the mutex of that name in the child after a fork, even if another thread
 * held it at that time, so that the child can open connections of its own
 * (F17).  The child finds the data that the mutex guards as that thread left
 * them, perhaps half changed: the code must cope with this, or not use them in
 * a child. */
#define LK_FREE_IN_CHILD(name)                                                 \
    static void name##_free_in_child(void)                                     \
    {                                                                          \
        (name) = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;                   \
    }                                                                          \
    __attribute__((constructor)) static void name##_watch_forks(void)          \
    {                                                                          \
        (void)pthread_atfork(NULL, NULL, name##_free_in_child);                \
    }

/* Define a static mutex that is free in the child after a fork. */
#define LK_STATIC_MUTEX(name)                                                  \
    static pthread_mutex_t name;                                               \
    LK_FREE_IN_CHILD(name)                                                     \
    static pthread_mutex_t name = PTHREAD_MUTEX_INITIALIZER

#endif
