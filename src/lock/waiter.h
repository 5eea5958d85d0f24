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
struct lk_part;

/* Reason why a waiter was woken.  A later reason replaces an earlier one; none
 * follows the turn or the grant. */
enum lk_wake_reason {
    LK_WAKE_NONE, /* not woken */
    /* the holder's lease is over: the first in the FIFO may take the turn */
    LK_WAKE_LOOK,
    LK_WAKE_RETRY,   /* taken out of the FIFO, to enter again */
    LK_WAKE_TURN,    /* the waiter has the turn */
    LK_WAKE_GRANTED, /* the lease was handed off to the waiter */
    LK_WAKE_ROW      /* the row may be ours: it was read, or rung for */
};

/* Change of the row that ends a subscription at the poller. */
enum lk_poll_until {
    LK_POLL_UNTIL_FREE,   /* the row may be claimed */
    LK_POLL_UNTIL_CHANGED /* as above, or the holder has changed */
};

/* A waiter's subscription at the poller (poller.h). */
struct lk_subscription {
    struct lk_waiter *next, *previous;
    struct lk_part *part; /* the part whose row is read; NULL: none */
    int64_t due_ns;       /* time of the next read, CLOCK_MONOTONIC */
    enum lk_poll_until until;
    int64_t pause_ns;             /* until the next read */
    int64_t ends_ns;              /* the waiter is woken then in any case */
    char holder[SQLOCK_KEY_SIZE]; /* as first read */
    int rc;                       /* of the read that ended the subscription */
    sqlock_error err;
};

/* Result of a step of a request where a thread would sleep. */
#define LK_SUSPENDED 1
/* Result of a step during which the acquisition has to look at the rows that it
 * keeps (kept.h).  The wait goes on with the same step. */
#define LK_ALARM 3

struct lk_waiter {
    /* constant */
    int64_t wait_ms;
    int64_t deadline_ns;                   /* CLOCK_MONOTONIC */
    int64_t asked_ns;                      /* as in lease.h */
    const sqlock_acquire_options *options; /* with defaults filled in */
    /* Makes a suspended request run again; NULL: the waiter is a thread.  Runs
     * with the waiter's mutex and others held, and may take only the
     * executor's. */
    void (*on_wake)(struct lk_waiter *waiter);

    /* used by the thread that runs the acquisition */
    /* when a suspended request continues if it is not woken, CLOCK_MONOTONIC */
    int64_t until_ns;
    /* when to return LK_ALARM, CLOCK_MONOTONIC; LK_NEVER: not by time */
    int64_t alarm_ns;
    bool is_deadlocked; /* deadlock.h: leave the FIFO */

    /* the application has abandoned the request; guarded by the mutex of each
     * slot at which the request has a part */
    bool is_abandoned;

    /* guards the following fields; taken after a slot's mutex */
    pthread_mutex_t mutex;
    pthread_cond_t woken;
    enum lk_wake_reason reason;
    bool is_cancelled; /* stays true */
    bool is_to_yield;  /* return LK_ALARM at once: somebody needs a kept row */

    /* guarded by the poller's mutex */
    struct lk_subscription subscription;

    int cancel_fd; /* 0: none; constant once watched */
    struct {
        struct lk_waiter *next, *previous;
        struct lk_cancel_fd *watched; /* NULL: none, or cancelled */
    } cancel;                         /* guarded by the canceller's mutex */
};

void lk_waiter_init(struct lk_waiter *waiter, int64_t wait_ms,
                    const sqlock_acquire_options *options);
void lk_waiter_clear(struct lk_waiter *waiter);

/* Wake the waiter for that reason, from any thread.  The caller holds the mutex
 * of the slot, of the poller or of the bell. */
void lk_waiter_wake(struct lk_waiter *waiter, enum lk_wake_reason reason);

/* Have the waiter return LK_ALARM, from any thread. */
void lk_waiter_yield(struct lk_waiter *waiter);

/* Reset the wake reason.  Call it before the waiter can be woken for something
 * new. */
void lk_waiter_prepare(struct lk_waiter *self);

/* Sleep until the waiter is woken, until until_ns (CLOCK_MONOTONIC) or, with
 * hears_cancel, until the wait is cancelled.  Return 0, without saying which of
 * these it was; LK_ALARM, before any of them; or LK_SUSPENDED at once, if a
 * request would have to sleep. */
int lk_waiter_park(struct lk_waiter *self, int64_t until_ns, bool hears_cancel);

/* Sleep until until_ns (CLOCK_MONOTONIC), even in a request.  Return 0, or
 * ECANCELED as soon as the wait is cancelled. */
int lk_waiter_sleep(struct lk_waiter *self, int64_t until_ns,
                    sqlock_error *err);

bool lk_waiter_is_cancelled(struct lk_waiter *self);

/* Return the deadline of a statement that is sent now: statement_timeout_ms
 * from now, and no later than statement_timeout_ms after the end of the
 * wait. */
int64_t lk_waiter_statement_deadline(const struct lk_waiter *self,
                                     const struct lk_store *store);

/* Set the error of a cancelled wait, and return ECANCELED. */
int lk_canceled(sqlock_error *err);

/* Set the error of a lock that was not free in time, and return it: EBUSY if
 * wait_ms is 0, otherwise ETIMEDOUT. */
int lk_not_in_time(int64_t wait_ms, sqlock_error *err);

#endif
