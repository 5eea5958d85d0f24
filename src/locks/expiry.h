/*
 * expiry.h - report in time that a lease is over, in a thread that does no I/O
 * and never waits for one that does (F1, F3)
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
    uint64_t grant; /* the grant whose lease is watched */
    bool is_listed; /* false once it has been reported */
};

struct lk_expiry {
    /* taken before an entry's; never held in a callback */
    pthread_mutex_t mutex;
    pthread_cond_t idle; /* no callback is running */
    /* to be woken when a watched lease was lost, or ends earlier than before */
    struct lk_handler handler;
    struct sqlock_lock *expiring;
    struct sqlock_lock *calling; /* its callback is running */
};

/* Initialize; callbacks run in the thread of that service. */
void lk_expiry_init(struct lk_expiry *expiry, struct lk_service *events);

/* Begin, and end, to watch the lease of a grant; lk_expiry_forget() also ends
 * earlier grants (0: any).  End it before the lock is released.  After
 * lk_expiry_forget() the lock's callback will not be called for that lease and,
 * if it `waits`, is not running.  ERESOURCE: it could not begin. */
int lk_expiry_watch(struct lk_expiry *expiry, struct sqlock_lock *lock,
                    uint64_t grant, sqlock_error *err);
void lk_expiry_forget(struct lk_expiry *expiry, struct sqlock_lock *lock,
                      uint64_t grant, bool waits);

/* Make the lock's descriptor, if it has one, unreadable.  Called with the mutex
 * of the lock's entry held. */
void lk_lost_fd_clear(struct sqlock_lock *lock);

#endif
