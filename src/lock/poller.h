/*
 * poller.h - read the rows that a process waits for, all in one statement and
 * without locking them, in the store's background service
 */
#ifndef LK_POLLER_H
#define LK_POLLER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/service.h"
#include "sqlock.h"

struct lk_part;

/* Change of the row that ends a subscription. */
enum lk_poll_until {
    LK_POLL_UNTIL_FREE,    /* the row may be claimed */
    LK_POLL_UNTIL_CHANGED, /* as above, or the holder has changed */
    /* as the first, every second or so: where the part hears the one before it
     * only, which may have stopped */
    LK_POLL_BESIDE_BELL
};

/* A part's subscription; the mutex guards it. */
struct lk_subscription {
    struct lk_part *next, *previous;
    bool is_listed; /* false once it has ended */
    int64_t due_ns; /* time of the next read, CLOCK_MONOTONIC */
    enum lk_poll_until until;
    int64_t pause_ns;             /* until the next read */
    int64_t ends_ns;              /* the waiter is woken then in any case */
    char holder[SQLOCK_KEY_SIZE]; /* as first read */
    int rc;                       /* of the read that ended the subscription */
    sqlock_error err;
};

struct lk_poller {
    struct sqlock_registry *registry;
    struct lk_handler handler;
    /* guarded by the mutex */
    struct lk_part *subscribers;
    size_t count;
    /* CLOCK_BOOTTIME: end of the pause after a failed read */
    int64_t not_before_ns;
};

void lk_poller_init(struct lk_poller *poller, struct sqlock_registry *registry);

/* Subscribe to the part's row: it is read at intervals until it is as wanted or
 * cannot be read, and then the waiter is woken, once.  The subscription lasts
 * at most until lk_poller_await() returns other than LK_SUSPENDED.  The waiter
 * is woken at look_ns in any case.  Return 0 or ERESOURCE. */
int lk_poller_begin(struct lk_part *part, enum lk_poll_until until,
                    int64_t look_ns, sqlock_error *err);

/* Wait for the poller.  Return 0 if the row is as wanted, or the time is over:
 * then the last claim shows whether the row is free; ECANCELED, EDEADLOCK or an
 * error of lk_row_read(); or LK_SUSPENDED if a request must wait, or LK_ALARM:
 * call again. */
int lk_poller_await(struct lk_part *part, sqlock_error *err);

/* End the subscription of a part that waits no more. */
void lk_poller_end(struct lk_part *part);

#endif
