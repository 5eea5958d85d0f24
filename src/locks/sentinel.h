/*
 * sentinel.h - the thread that says in time that a lease is over: no I/O, no
 * waiting for anybody who does I/O (F1, F3)
 */
#ifndef LK_SENTINEL_H
#define LK_SENTINEL_H

#include <pthread.h>

#include "base/alarm.h"
#include "sqlock.h"

/* A lock's place in the sentinel's list; embedded in the lock. */
struct lk_watched {
    struct sqlock_lock *next, *previous;
    bool is_listed; /* no longer once it has been told */
};

struct lk_sentinel {
    pthread_mutex_t mutex; /* before a lock's; never held in a callback */
    pthread_cond_t idle;   /* no callback is running any more */
    pthread_t thread;
    struct lk_alarm alarm;
    struct sqlock_lock *watched;
    struct sqlock_lock *calling; /* whose callback is running */
    bool is_running;
    bool is_stopping;
};

void lk_sentinel_init(struct lk_sentinel *sentinel);
void lk_sentinel_stop(struct lk_sentinel *sentinel); /* once or more */

/* Begin and end to watch a lease; end it before the lock is released.  Starting
 * may fail with ERESOURCE.  After lk_sentinel_forget() returns, the lock's
 * callback is not running and will not be called. */
int lk_sentinel_watch(struct lk_sentinel *sentinel, struct sqlock_lock *lock,
                      sqlock_error *err);
void lk_sentinel_forget(struct lk_sentinel *sentinel, struct sqlock_lock *lock);

/* A watched lease was lost, or ends sooner than it did. */
void lk_sentinel_wake(struct lk_sentinel *sentinel);

/* With the lock's mutex held: its descriptor, if it has one, is no longer
 * readable. */
void lk_lost_fd_clear(struct sqlock_lock *lock);

#endif
