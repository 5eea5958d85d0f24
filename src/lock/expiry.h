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

/* Links of a lock in the expiry's list; embedded in the lock. */
struct lk_expiring {
    struct sqlock_lock *next, *previous;
    uint64_t grant; /* the grant whose lease is watched */
    bool is_listed; /* false once it has been reported */
};

struct lk_expiry {
    /* taken before a slot's; never held in a callback */
    pthread_mutex_t mutex;
    pthread_cond_t idle; /* signals that no callback is running */
    /* wake it when a watched lease was lost, or ends earlier than before */
    struct lk_handler handler;
    struct sqlock_lock *expiring;
    struct sqlock_lock *calling; /* lock whose callback is running; NULL */
};

/* Initialize the struct; callbacks run in the thread of the service
 * `events`. */
void lk_expiry_init(struct lk_expiry *expiry, struct lk_service *events);

/* Begin to watch the lease of a grant; a grant that is over is ignored.  Return
 * 0 or ERESOURCE. */
int lk_expiry_watch(struct lk_expiry *expiry, struct sqlock_lock *lock,
                    uint64_t grant, sqlock_error *err);

/* End watching the lease of a grant and of earlier grants (0: of any).  Call it
 * before the lock is released.  Afterwards the lock's callback will not be
 * called for that lease and, if it `waits`, is not running. */
void lk_expiry_forget(struct lk_expiry *expiry, struct sqlock_lock *lock,
                      uint64_t grant, bool waits);

/* Wait until the lock's callback is not running. */
void lk_expiry_await_callback(struct lk_expiry *expiry,
                              struct sqlock_lock *lock);

/* Make the lock's descriptor, if it has one, unreadable.  The caller holds the
 * mutex of the lock's slot. */
void lk_lost_fd_clear(struct sqlock_lock *lock);

#endif
