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

/* Result of a step of a request where a thread would sleep. */
#define LK_SUSPENDED 1
/* Result of a step during which the acquisition has to look at the rows that it
 * keeps (kept.h).  The wait goes on with the same step. */
#define LK_ALARM 3
/* Result of a step that would call the database, in a thread that may not. */
#define LK_BLOCKED 4

struct lk_waiter {
    /* constant */
    int64_t wait_ms;
    int64_t deadline_ns;                   /* CLOCK_MONOTONIC */
    int64_t asked_ns;                      /* as in lease.h */
    const sqlock_acquire_options *options; /* with defaults filled in */
    /* Makes a suspended request run again; NULL: the waiter is a thread.  Runs
     * with the mutex held, and may take only the executor's. */
    void (*on_wake)(struct lk_waiter *waiter);

    /* used by the thread that runs the acquisition */
    /* when a suspended request continues if it is not woken, CLOCK_MONOTONIC */
    int64_t until_ns;
    /* when to return LK_ALARM, CLOCK_MONOTONIC; LK_NEVER: not by time */
    int64_t alarm_ns;
    int cancel_fd; /* 0: none */

    /* guarded by the mutex */
    pthread_cond_t woken;
    enum lk_wake_reason reason;
    bool is_abandoned;  /* the application has abandoned the request */
    bool is_cancelled;  /* stays true */
    bool is_to_yield;   /* return LK_ALARM at once: somebody needs a kept row */
    bool is_deadlocked; /* deadlock.h, circle.h: the wait would never end */
    struct {
        struct lk_waiter *next, *previous;
        struct lk_cancel_fd *watched; /* NULL: none, or cancelled */
    } cancel;
};

void lk_waiter_init(struct lk_waiter *waiter, int64_t wait_ms,
                    const sqlock_acquire_options *options);
void lk_waiter_clear(struct lk_waiter *waiter);

/* The caller of the functions down to lk_waiter_park() holds the mutex. */

/* Wake the waiter for that reason, from any thread. */
void lk_waiter_wake(struct lk_waiter *waiter, enum lk_wake_reason reason);

/* Have the waiter return LK_ALARM, from any thread. */
void lk_waiter_yield(struct lk_waiter *waiter);

/* Cancel the wait, from any thread. */
void lk_waiter_cancel(struct lk_waiter *waiter);

/* Sleep, without the mutex, until the waiter is woken, until until_ns
 * (CLOCK_MONOTONIC) or, with hears_cancel, until the wait is cancelled or is
 * known never to end.  Return
 * 0, without saying which of these it was; LK_ALARM, before any of them; or
 * LK_SUSPENDED at once, if a request would have to sleep.  Reset the reason
 * before the waiter can be woken for something new. */
int lk_waiter_park(struct lk_waiter *self, int64_t until_ns, bool hears_cancel);

/* The caller of the functions below does not hold the mutex. */

void lk_waiter_prepare(struct lk_waiter *self);
bool lk_waiter_is_cancelled(const struct lk_waiter *self);

/* Set the error of a cancelled wait, and return ECANCELED. */
int lk_canceled(sqlock_error *err);

/* Set the error of a lock that was not free in time, and return it: EBUSY if
 * wait_ms is 0, otherwise ETIMEDOUT. */
int lk_not_in_time(int64_t wait_ms, sqlock_error *err);

#endif
