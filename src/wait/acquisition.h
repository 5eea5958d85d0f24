/*
 * acquisition.h - one acquisition, from its call to the grant
 */
#ifndef LK_ACQUISITION_H
#define LK_ACQUISITION_H

#include "lease/lease.h"
#include "wait/entry.h"
#include "wait/patience.h"
#include "wait/queue_wait.h"

struct lk_acquisition {
    struct lk_entry *entry;
    struct lk_waiter self;
    sqlock_acquire_options options; /* complete */
    struct lk_lease lease;          /* while it claims */
    struct lk_queue_wait wait;
    struct lk_patience patience;
    bool has_turn; /* at the lock, to claim it */
};

/* Nothing is asked for yet, for that owner.  EINVAL: not to be ended. */
int lk_acquisition_begin(struct lk_acquisition *a, struct lk_entry *entry,
                         uint64_t owner, int64_t wait_ms,
                         const sqlock_acquire_options *options,
                         sqlock_error *err);

/* From here on it may be cancelled.  As lk_enter(); ERESOURCE. */
int lk_acquisition_enter(struct lk_acquisition *a, sqlock_error *err);

/* After that entry of it (entry.h): as sqlock_acquire(); LK_SUSPENDED: again
 * when it is woken, after lk_enter_on() or, with the turn, after
 * LK_ENTRY_CLAIM.  Of a lease that it was granted, self.grant is the grant. */
int lk_acquisition_go_on(struct lk_acquisition *a, int entry,
                         sqlock_error *err);
void lk_acquisition_end(struct lk_acquisition *a);

#endif
