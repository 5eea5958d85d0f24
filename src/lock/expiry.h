/*
 * expiry.h - report in time that a lease is over, in a thread that does no I/O
 * and never waits for one that does (F1, F3)
 */
#ifndef LK_EXPIRY_H
#define LK_EXPIRY_H

#include <pthread.h>

#include "base/service.h"
#include "sqlock.h"

struct lk_hold;

struct lk_expiry {
    /* wake it when a watched lease was lost, or ends earlier than before */
    struct lk_handler handler;
    /* guarded by the mutex */
    struct lk_hold *expiring;          /* watched, until they are reported */
    const struct sqlock_lock *calling; /* whose callback is running; NULL */
    /* for whose callback that callback waits; NULL: it does not wait */
    struct lk_expiry *awaited;
    pthread_cond_t idle; /* signals that none is running */
};

/* Initialize the struct; callbacks run in the thread of the service
 * `events`. */
void lk_expiry_init(struct lk_expiry *expiry, struct lk_service *events);
void lk_expiry_clear(struct lk_expiry *expiry);

/* The caller of the functions below holds the mutex. */

/* Begin to watch a lease; the handler is started, and woken afterwards. */
void lk_expiry_add(struct lk_expiry *expiry, struct lk_hold *hold);

/* End watching the lease. */
void lk_expiry_remove(struct lk_expiry *expiry, struct lk_hold *hold);

/* Return whether a wait for that handle's callback, or for any of the registry
 * (NULL), would never end: this thread runs a callback, for which that one
 * waits. */
bool lk_expiry_is_circle(const struct lk_expiry *expiry,
                         const struct sqlock_lock *lock);

/* Note that the callback which this thread runs, if it runs one, waits for the
 * callbacks of that registry; NULL: for none any more. */
void lk_expiry_note_wait(struct lk_expiry *expiry);

/* Wait, without the mutex, until the handle's callback is not running, unless
 * that would never end. */
void lk_expiry_await_callback(struct lk_expiry *expiry,
                              const struct sqlock_lock *lock);

#endif
