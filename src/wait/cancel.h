/*
 * cancel.h - ending a wait from outside: by a call, or by a descriptor that a
 * signal handler or an event loop writes to
 */
#ifndef LK_CANCEL_H
#define LK_CANCEL_H

#include <pthread.h>
#include <stdbool.h>

#include "base/service.h"
#include "sqlock.h"

struct lk_cancel_fd;
struct lk_waiter;
struct lk_entry;
struct lk_entries;

/* A lock that a waiter is about, wherever it waits; under the canceller's
 * mutex. */
struct lk_concern {
    struct lk_concern *next, *previous;
    struct lk_entry *entry;
    struct lk_waiter *waiter;
};

/* Watches the callers' descriptors in the entries' events service. */
struct lk_canceller {
    struct lk_entries *all;
    pthread_mutex_t mutex; /* before a lock's */
    struct lk_handler handler;
    struct lk_cancel_fd *watched; /* by descriptor */
    struct lk_concern *concerns;
};

void lk_canceller_init(struct lk_canceller *canceller, struct lk_entries *all);
void lk_canceller_stop(struct lk_canceller *canceller); /* once or more */

/* Cancel the waiter when that descriptor (<= 0: none) is readable, hung up or
 * broken, at once when it is already, until forgotten.  0, ERESOURCE,
 * ENOMEM. */
int lk_canceller_watch(struct lk_canceller *canceller, struct lk_waiter *waiter,
                       int fd, sqlock_error *err);
void lk_canceller_forget(struct lk_canceller *canceller,
                         struct lk_waiter *waiter);

/* From here on, until it is forgotten, whoever cancels that lock cancels the
 * waiter. */
void lk_concern_add(struct lk_canceller *canceller, struct lk_concern *concern,
                    struct lk_entry *entry, struct lk_waiter *waiter);
void lk_concern_remove(struct lk_canceller *canceller,
                       struct lk_concern *concern);

/* From any thread, with no entry's mutex held: every wait for it of that owner,
 * or (0) of all, ends with ECANCELED. */
void lk_entry_cancel(struct lk_entry *entry, uint64_t owner);

/* Likewise: that one's wait ends. */
void lk_waiter_cancel(struct lk_entries *all, struct lk_waiter *waiter);

#endif
