/*
 * expiry.h - telling in time that a lease is over, in a thread that does no I/O
 * and waits for nobody who does (F1, F3)
 */
#ifndef LK_EXPIRY_H
#define LK_EXPIRY_H

#include <pthread.h>
#include <stdbool.h>

#include "base/service.h"
#include "sqlock.h"

/* A lock's place in the expiry's list; embedded in the lock. */
struct lk_expiring {
    struct sqlock_lock *next, *previous;
    uint64_t grant; /* whose lease is watched */
    bool is_listed; /* no longer once it has been told */
};

struct lk_expiry {
    pthread_mutex_t mutex; /* before an entry's; never held in a callback */
    pthread_cond_t idle;   /* no callback is running any more */
    struct lk_handler handler;
    struct sqlock_lock *expiring;
    struct sqlock_lock *calling; /* whose callback is running */
};

/* Callbacks run in the thread of that service. */
void lk_expiry_init(struct lk_expiry *expiry, struct lk_service *events);
void lk_expiry_stop(struct lk_expiry *expiry); /* once or more */

/* Begin and end to watch the lease of a grant (to end: and of those before it;
 * 0: whichever); end it before the lock is released.  Starting may fail with
 * ERESOURCE.  After lk_expiry_forget() returns, the lock's callback is not
 * running and will not be called for it. */
int lk_expiry_watch(struct lk_expiry *expiry, struct sqlock_lock *lock,
                    uint64_t grant, sqlock_error *err);
void lk_expiry_forget(struct lk_expiry *expiry, struct sqlock_lock *lock,
                      uint64_t grant);

/* The same for one that is not to be watched: it waits for no callback. */
void lk_expiry_unwatch(struct lk_expiry *expiry, struct sqlock_lock *lock,
                       uint64_t grant);

/* A watched lease was lost, or ends sooner than it did. */
void lk_expiry_wake(struct lk_expiry *expiry);

/* With the mutex of the lock's entry held: its descriptor, if it has one, is no
 * longer readable. */
void lk_lost_fd_clear(struct sqlock_lock *lock);

#endif
