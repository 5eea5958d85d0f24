/*
 * poller.h - read the rows that a process waits for, all in one statement and
 * without locking them, in the store's background service
 */
#ifndef LK_POLLER_H
#define LK_POLLER_H

#include <pthread.h>

#include "base/service.h"
#include "sqlock.h"
#include "lock/waiter.h"

struct lk_slots;
struct lk_part;

struct lk_poller {
    struct lk_slots *all;
    pthread_mutex_t mutex; /* taken before those of slots and waiters */
    struct lk_handler handler;
    struct lk_waiter *subscriptions;
    size_t count;
    /* CLOCK_BOOTTIME: end of the pause after a failed read */
    int64_t not_before_ns;
};

void lk_poller_init(struct lk_poller *poller, struct lk_slots *all);

/* Subscribe to the part's row: it is read at intervals until it is as wanted or
 * cannot be read, and then the waiter is woken, once.  The subscription lasts
 * at most until lk_poller_await() returns other than LK_SUSPENDED.  Return 0
 * or ERESOURCE. */
int lk_poller_begin(struct lk_part *part, enum lk_poll_until until,
                    sqlock_error *err);

/* Wait for the poller.  Return 0 if the row is as wanted; ETIMEDOUT, ECANCELED,
 * or an error of lk_row_read(); or LK_SUSPENDED if a request must wait, or
 * LK_ALARM: call again. */
int lk_poller_await(struct lk_part *part, sqlock_error *err);

#endif
