/*
 * waiter.h - one that waits, for the whole acquisition, and how it is woken
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

/* Why a waiter was woken.  The last reason counts: none comes after the turn
 * or the grant. */
enum lk_wake_reason {
    LK_WAKE_NONE,    /* nobody has woken it */
    LK_WAKE_LOOK,    /* the holder's lease is over: it may go past, if it is the
                       first */
    LK_WAKE_RETRY,   /* out of the FIFO, to enter anew */
    LK_WAKE_TURN,    /* it is this one's turn, and nobody else's */
    LK_WAKE_GRANTED, /* the lease was handed off to it */
    LK_WAKE_ROW      /* the poller has read the row: row_rc */
};

/* What ends a subscription at the poller. */
enum lk_poll_until {
    LK_POLL_UNTIL_FREE,   /* the row may be claimed */
    LK_POLL_UNTIL_CHANGED /* that, or another has it */
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

/* What a step returns instead of sleeping, to a request. */
#define LK_SUSPENDED 1

struct lk_waiter {
    /* never change */
    int64_t wait_ms;
    int64_t deadline_ns;                   /* CLOCK_MONOTONIC */
    int64_t asked_ns;                      /* as in lease.h */
    const sqlock_acquire_options *options; /* complete */
    /* NULL: a thread.  With any mutexes held; takes the executor's only. */
    void (*on_wake)(struct lk_waiter *waiter);

    /* of the one that runs it */
    bool
        may_not_block; /* in the database: no thread would be left for others */
    int64_t until_ns;  /* suspended: to go on then, unless woken before */

    bool is_abandoned; /* a request that nobody waits for any more; under the
                          mutex of each entry that it is at */

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

/* From any thread: it goes on, for that reason.  With an entry's or the
 * poller's mutex held, as the case may be. */
void lk_waiter_wake(struct lk_waiter *waiter, enum lk_wake_reason reason);

/* By the waiter, before it can be woken for something new. */
void lk_waiter_prepare(struct lk_waiter *self);

/* Until it is woken or cancelled, or that point of CLOCK_MONOTONIC: 0, and the
 * caller finds out which; LK_SUSPENDED, at once, to a request that none of them
 * is true of. */
int lk_waiter_park(struct lk_waiter *self, int64_t until_ns);

/* The same, but only a wake-up ends it: that is under way. */
int lk_waiter_park_through(struct lk_waiter *self);

/* Sleep until a point of CLOCK_MONOTONIC, a request as well; 0, ECANCELED. */
int lk_waiter_sleep(struct lk_waiter *self, int64_t until_ns,
                    sqlock_error *err);

enum lk_wake_reason lk_waiter_reason(struct lk_waiter *self);
bool lk_waiter_is_cancelled(struct lk_waiter *self);

/* ECANCELED. */
int lk_canceled(sqlock_error *err);

/* EBUSY or ETIMEDOUT. */
int lk_not_in_time(int64_t wait_ms, sqlock_error *err);

#endif
