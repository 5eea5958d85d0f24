/*
 * cancel.h - cancel a wait, by a call or by a descriptor that a signal handler
 * or an event loop writes to
 */
#ifndef LK_CANCEL_H
#define LK_CANCEL_H

#include "base/service.h"
#include "sqlock.h"

struct lk_cancel_fd;
struct lk_waiter;
struct lk_slot;

/* Watches the application's descriptors (cancel_fd), in the service `events`.
 * The mutex guards it. */
struct lk_canceller {
    struct lk_handler handler;
    struct lk_cancel_fd *watched; /* hash table, by descriptor */
};

void lk_canceller_init(struct lk_canceller *canceller,
                       struct lk_service *events);

/* Cancel the waiter when the descriptor (0: none) is readable, hung up or
 * broken, until lk_canceller_forget().  Return 0, or EINVAL, ERESOURCE or
 * ENOMEM. */
int lk_canceller_watch(struct lk_canceller *canceller, struct lk_waiter *waiter,
                       int fd, sqlock_error *err);
void lk_canceller_forget(struct lk_canceller *canceller,
                         struct lk_waiter *waiter);

/* Cancel that owner's (0: any owner's) waits for the lock, from any thread.  A
 * claim that was sent is still completed. */
void lk_slot_cancel(struct lk_slot *slot, uint64_t owner);

#endif
