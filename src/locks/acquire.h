/*
 * acquire.h - an acquisition from its call to its end, and giving back
 */
#ifndef LK_ACQUIRE_H
#define LK_ACQUIRE_H

#include "locks/queue_wait.h"
#include "lease/lease.h"
#include "locks/registry.h"
#include "locks/patience.h"

struct lk_acquisition {
    sqlock_lock *lock;
    struct lk_waiter self;
    sqlock_acquire_options options; /* complete */
    struct lk_lease lease;          /* while it claims */
    struct lk_queue_wait wait;
    struct lk_patience patience;
    bool has_turn; /* at the lock, to claim it */
};

/* Nothing is asked for yet.  EINVAL, EFORK: not to be ended. */
int lk_acquisition_begin(struct lk_acquisition *a, sqlock_lock *lock,
                         int64_t wait_ms, const sqlock_acquire_options *options,
                         sqlock_error *err);

/* From here on it may be cancelled.  As lk_enter(); ERESOURCE. */
int lk_acquisition_enter(struct lk_acquisition *a, sqlock_error *err);

/* After that entry of it (entry.h): as sqlock_acquire(); LK_SUSPENDED: again
 * when it is woken, after lk_enter_on() or, with the turn, after
 * LK_ENTRY_CLAIM. */
int lk_acquisition_go_on(struct lk_acquisition *a, int entry,
                         sqlock_error *err);
void lk_acquisition_end(struct lk_acquisition *a);

/* Undo one acquire of that owner's; as sqlock_release(). */
int lk_give_back(sqlock_lock *lock, uint64_t owner, sqlock_error *err);

/* The rest of that, after lk_begin_release() gave 1. */
int lk_end_lease(sqlock_lock *lock, struct lk_lease *lease, int lost,
                 sqlock_error *err);

/* Likewise after LK_RELEASE_OVERDUE. */
int lk_end_overdue(sqlock_lock *lock, struct lk_lease *lease, int lost,
                   sqlock_error *err);

#endif
