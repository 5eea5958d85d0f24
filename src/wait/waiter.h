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
struct lk_part;

/* Reason why a waiter was woken.  The last one counts: none comes after the
 * turn or the grant. */
enum lk_wake_reason {
    LK_WAKE_NONE, /* not woken */
    /* the holder's lease is over: the first in the FIFO may take the turn */
    LK_WAKE_LOOK,
    LK_WAKE_RETRY,   /* taken out of the FIFO, to enter again */
    LK_WAKE_TURN,    /* the waiter has the turn */
    LK_WAKE_GRANTED, /* the lease was handed off to the waiter */
    LK_WAKE_ROW      /* the poller has read the row */
};

/* Change of the row that ends a subscription at the poller.  Also results of
 * lk_queue_await(), and so no codes. */
enum lk_poll_until {
    LK_POLL_UNTIL_FREE = 2, /* the row may be claimed */
    LK_POLL_UNTIL_CHANGED   /* as above, or the holder has changed */
};

/* A place in the poller's list (poller.h). */
struct lk_subscription {
    struct lk_waiter *next, *previous;
    struct lk_part *part; /* its row is read; NULL: not in the list */
    int64_t due_ns;       /* time of the next read, CLOCK_MONOTONIC */
    enum lk_poll_until until;
    char holder[SQLOCK_KEY_SIZE]; /* as first read */
    int rc;                       /* of the last read, before LK_WAKE_ROW */
    sqlock_error err;
};

/* Result of a step of a request where a thread would sleep. */
#define LK_SUSPENDED 1

struct lk_waiter {
    /* constant */
    int64_t wait_ms;
    int64_t deadline_ns;                   /* CLOCK_MONOTONIC */
    int64_t asked_ns;                      /* as in lease.h */
    const sqlock_acquire_options *options; /* with defaults filled in */
    /* Wakes a request; NULL: the waiter is a thread.  Called with any mutexes
     * held; takes only the executor's. */
    void (*on_wake)(struct lk_waiter *waiter);

    /* used by the thread that runs the acquisition */
    /* in the database: no thread would be left for others */
    bool may_not_block;
    /* when a suspended request continues, unless woken */
    int64_t until_ns;

    /* a request without a caller; guarded by the mutex of each entry at which
     * it has a part */
    bool is_abandoned;

    /* guards the following fields; taken after an entry's */
    pthread_mutex_t mutex;
    pthread_cond_t woken;
    enum lk_wake_reason reason;
    bool is_cancelled;              /* stays true */
    struct lk_connection *waits_on; /* its blocked connection; NULL */

    /* guarded by the poller's mutex */
    struct lk_subscription subscription;

    int cancel_fd; /* 0: none; constant once it is watched */
    struct {
        struct lk_waiter *next, *previous;
        struct lk_cancel_fd *watched; /* NULL: none, or cancelled */
    } cancel;                         /* guarded by the canceller's mutex */
};

void lk_waiter_init(struct lk_waiter *waiter, int64_t wait_ms,
                    const sqlock_acquire_options *options);
void lk_waiter_clear(struct lk_waiter *waiter);

/* Wake the waiter for that reason, from any thread, with the entry's or the
 * poller's mutex held. */
void lk_waiter_wake(struct lk_waiter *waiter, enum lk_wake_reason reason);

/* Reset the wake reason, before the waiter can be woken for something new. */
void lk_waiter_prepare(struct lk_waiter *self);

/* Sleep until the waiter is woken or, if it hears that, cancelled, or until
 * until_ns, CLOCK_MONOTONIC.  0: the caller finds out which; LK_SUSPENDED: a
 * request must wait, and returns at once. */
int lk_waiter_park(struct lk_waiter *self, int64_t until_ns, bool hears_cancel);

/* Sleep until a point of CLOCK_MONOTONIC, even in a request; 0, ECANCELED. */
int lk_waiter_sleep(struct lk_waiter *self, int64_t until_ns,
                    sqlock_error *err);

bool lk_waiter_is_cancelled(struct lk_waiter *self);

/* Return the deadline of a statement that is sent now: at most one statement's
 * time after the end of the wait. */
int64_t lk_waiter_statement_deadline(const struct lk_waiter *self,
                                     const struct lk_store *store);

/* Set the error of a cancelled wait, and return ECANCELED. */
int lk_canceled(sqlock_error *err);

/* Set the error of a lock that was not free in time, and return it: ETIMEDOUT
 * after a wait, otherwise EBUSY. */
int lk_not_in_time(int64_t wait_ms, sqlock_error *err);

#endif
