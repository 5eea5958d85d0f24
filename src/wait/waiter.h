/*
 * waiter.h - who wants a lock, for the whole acquisition, and how that is woken
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

enum lk_wake_reason {
    LK_WAKE_NONE,    /* the deadline came first */
    LK_WAKE_TURN,    /* it is this one's turn, and nobody else's */
    LK_WAKE_RETRY,   /* something changed: look again */
    LK_WAKE_GRANTED, /* the lock was handed off to it */
    LK_WAKE_CANCELED
};

/* A place in the poller's list (poller.h). */
struct lk_subscription {
    struct lk_waiter *next, *previous;
    struct lk_entry *entry;
    int64_t due_ns; /* when to look next, CLOCK_MONOTONIC */
    bool is_listed;
    bool tells_change; /* of holder, too */
    char holder[SQLOCK_KEY_SIZE];
    struct lk_observed seen;
};

/* What a wait returns instead of waiting, to who is woken by a call. */
#define LK_SUSPENDED 1

/* Who wants a lock, for the whole acquisition: a thread, which sleeps on the
 * conditions, or a request, which is woken by a call. */
struct lk_waiter {
    struct lk_waiter *next, *previous;
    pthread_cond_t fifo_woken;
    /* NULL: a thread.  With any mutexes held; takes the executor's only. */
    void (*on_wake)(struct lk_waiter *waiter);
    enum lk_wake_reason reason;
    bool is_queued;
    bool may_not_block; /* in a queue: no thread would be left for others */
    bool is_granting;   /* the lock is being handed off to it */
    bool is_abandoned;  /* a request that nobody waits for any more */
    uint64_t owner;     /* that will have it */
    uint64_t grant;     /* by which it got it; 0: not yet, or again */
    int64_t wait_ms;
    int64_t asked_ns;                      /* as in lease.h */
    int64_t deadline_ns;                   /* CLOCK_MONOTONIC */
    const sqlock_acquire_options *options; /* complete; NULL: a hand-off is not
                                              for it */

    pthread_mutex_t mutex; /* of what follows; behind a lock's */
    pthread_cond_t woken;
    bool is_cancelled;
    struct lk_entry *queued_at;     /* or about to be */
    struct lk_connection *waits_on; /* blocked in the database; NULL */
    bool is_polling;         /* suspended: begun at the poller, and not ended */
    int64_t paused_until_ns; /* CLOCK_MONOTONIC, between two attempts while the
                                database is away; 0: in none */
    bool is_told;            /* by the poller: told_rc */
    int told_rc;
    sqlock_error told;

    struct lk_subscription subscription; /* under the poller's mutex */
    bool
        has_cancel_fd; /* never changes; the rest under the canceller's mutex */
    struct {
        struct lk_waiter *next, *previous;
        struct lk_cancel_fd *watched; /* NULL: none, or it was cancelled */
    } cancel;
};

void lk_waiter_init(struct lk_waiter *waiter, int64_t wait_ms,
                    const sqlock_acquire_options *options);
void lk_waiter_clear(struct lk_waiter *waiter);

/* Called with the waiter's mutex held: something has changed for it. */
void lk_waiter_wake(struct lk_waiter *waiter);

/* Called with the waiter's mutex held: wait until woken, or that point of
 * CLOCK_MONOTONIC.  0, ETIMEDOUT. */
int lk_waiter_wait(struct lk_waiter *waiter, int64_t until_ns);

/* Sleep until a point of CLOCK_MONOTONIC; 0, ECANCELED. */
int lk_waiter_sleep(struct lk_waiter *waiter, int64_t until_ns,
                    sqlock_error *err);

bool lk_waiter_is_cancelled(struct lk_waiter *waiter);

/* ECANCELED. */
int lk_canceled(sqlock_error *err);

/* EBUSY or ETIMEDOUT. */
int lk_not_in_time(int64_t wait_ms, sqlock_error *err);

#endif
