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
struct lk_slot;
struct lk_slots;

/* Watches the application's descriptors (cancel_fd) in the service `events` of
 * the slots. */
struct lk_canceller {
    struct lk_slots *all;
    /* taken before the other mutexes of src/wait (slots.h) */
    pthread_mutex_t mutex;
    struct lk_handler handler;
    struct lk_cancel_fd *watched; /* hash table, by descriptor */
};

void lk_canceller_init(struct lk_canceller *canceller, struct lk_slots *all);

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

/* Cancel one wait, from any thread.  The caller may hold the mutex of an
 * slot. */
void lk_waiter_cancel(struct lk_waiter *waiter);

#endif
