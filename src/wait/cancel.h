/*
 * cancel.h - cancel a wait, by a call or by a descriptor that a signal handler
 * or an event loop writes to
 */
#ifndef LK_CANCEL_H
#define LK_CANCEL_H

#include <pthread.h>

#include "base/service.h"
#include "sqlock.h"

struct lk_cancel_fd;
struct lk_waiter;
struct lk_entry;
struct lk_entries;

/* Watches the callers' descriptors in the entries' events service. */
struct lk_canceller {
    struct lk_entries *all;
    /* taken before the others of src/wait (entries.h) */
    pthread_mutex_t mutex;
    struct lk_handler handler;
    struct lk_cancel_fd *watched; /* by descriptor */
};

void lk_canceller_init(struct lk_canceller *canceller, struct lk_entries *all);

/* Cancel the waiter when the descriptor (0: none) is readable, hung up or
 * broken, until lk_canceller_forget().  0, EINVAL, ERESOURCE, ENOMEM. */
int lk_canceller_watch(struct lk_canceller *canceller, struct lk_waiter *waiter,
                       int fd, sqlock_error *err);
void lk_canceller_forget(struct lk_canceller *canceller,
                         struct lk_waiter *waiter);

/* Cancel that owner's waits for the lock, or (0) those of any owner, from any
 * thread.  A statement that writes may finish. */
void lk_entry_cancel(struct lk_entry *entry, uint64_t owner);

/* Cancel one wait, from any thread. */
void lk_waiter_cancel(struct lk_entries *all, struct lk_waiter *waiter);

#endif
