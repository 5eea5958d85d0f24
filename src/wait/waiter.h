/*
 * waiter.h - the waiter of an acquisition, and how it is woken
 *
 * A waiter is a thread, which sleeps on the condition, or a request, which is
 * suspended and woken by a call.  Both go through the same steps
 * (acquisition.c).
 */
#ifndef LK_WAITER_H
#define LK_WAITER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "lease/lease.h"
#include "sqlock.h"

struct lk_cancel_fd;
struct lk_connection;
struct lk_entry;

/* Reason for which a waiter was woken.  The last one counts: none comes after
 * the turn or the grant. */
enum lk_wake_reason {
    LK_WAKE_NONE,    /* nobody has woken it */
    LK_WAKE_LOOK,    /* the holder's lease is over: the first in the FIFO may
                       take the turn */
    LK_WAKE_RETRY,   /* taken out of the FIFO, to enter anew */
    LK_WAKE_TURN,    /* the waiter has the turn */
    LK_WAKE_GRANTED, /* the lease was handed off to the waiter */
    LK_WAKE_ROW      /* the poller has read the row: row_rc */
};

/* Change of the row that ends a subscription at the poller. */
enum lk_poll_until {
    LK_POLL_UNTIL_FREE,   /* the row may be claimed */
    LK_POLL_UNTIL_CHANGED /* the same, or the holder is another */
};

/* A place in the poller's list (poller.h). */
struct lk_subscription {
    struct lk_waiter *next, *previous;
    struct lk_entry *entry; /* whose row is read; NULL: not in the list */
    int64_t due_ns;         /* when to read it next, CLOCK_MONOTONIC */
    enum lk_poll_until until;
    char holder[SQLOCK_KEY_SIZE]; /* as it was read first */
    struct lk_observed *seen;
};

/* Result of a step of a request where a thread would sleep. */
#define LK_SUSPENDED 1

struct lk_waiter {
    /* never change */
    int64_t wait_ms;
    int64_t deadline_ns;                   /* CLOCK_MONOTONIC */
    int64_t asked_ns;                      /* as in lease.h */
    const sqlock_acquire_options *options; /* complete */
    /* Wakes a request; NULL: the waiter is a thread.  Called with any mutexes
     * held; takes the executor's only. */
    void (*on_wake)(struct lk_waiter *waiter);

    /* of the thread that runs the acquisition */
    bool
        may_not_block; /* in the database: no thread would be left for others */
    int64_t until_ns;  /* when a suspended request goes on, unless woken */

    bool is_abandoned; /* a request without a caller; under the mutex of each
                          entry that it has a part at */

    pthread_mutex_t mutex; /* of what follows; behind an entry's */
    pthread_cond_t woken;
    enum lk_wake_reason reason;
    bool is_cancelled;              /* for good */
    struct lk_connection *waits_on; /* blocked in the database; NULL */

    /* under the poller's mutex */
    struct lk_subscription subscription;
    int row_rc; /* before LK_WAKE_ROW */
    sqlock_error row_err;

    int cancel_fd; /* 0: none; never changes once it is watched */
    struct {
        struct lk_waiter *next, *previous;
        struct lk_cancel_fd *watched; /* NULL: none, or it was cancelled */
    } cancel;                         /* under the canceller's mutex */
};

void lk_waiter_init(struct lk_waiter *waiter, int64_t wait_ms,
                    const sqlock_acquire_options *options);
void lk_waiter_clear(struct lk_waiter *waiter);

/* Wake the waiter for that reason, from any thread, with the entry's or the
 * poller's mutex held. */
void lk_waiter_wake(struct lk_waiter *waiter, enum lk_wake_reason reason);

/* Forget the last wake-up, before the waiter can be woken for something new. */
void lk_waiter_prepare(struct lk_waiter *self);

/* Sleep until the waiter is woken or cancelled, or until that point of
 * CLOCK_MONOTONIC.  0: the caller finds out which; LK_SUSPENDED, at once, to a
 * request for which none of them has come. */
int lk_waiter_park(struct lk_waiter *self, int64_t until_ns);

/* Sleep until a wake-up that is under way.  0, LK_SUSPENDED. */
int lk_waiter_park_through(struct lk_waiter *self);

/* Sleep until a point of CLOCK_MONOTONIC, also as a request; 0, ECANCELED. */
int lk_waiter_sleep(struct lk_waiter *self, int64_t until_ns,
                    sqlock_error *err);

enum lk_wake_reason lk_waiter_reason(struct lk_waiter *self);
bool lk_waiter_is_cancelled(struct lk_waiter *self);

/* Set the error of a cancelled wait, and return ECANCELED. */
int lk_canceled(sqlock_error *err);

/* Set the error of a lock that was not free in time, and return it: EBUSY, or
 * ETIMEDOUT of a wait. */
int lk_not_in_time(int64_t wait_ms, sqlock_error *err);

#endif
