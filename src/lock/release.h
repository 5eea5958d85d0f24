/*
 * release.h - release N >= 1 leases: each is handed off to the next waiter of
 * this process, or released together with the others in one statement
 */
#ifndef LK_RELEASE_H
#define LK_RELEASE_H

#include "lock/hold.h"
#include "lock/set.h"

/* Which acquire to undo. */
struct lk_undo {
    uint64_t owner; /* one of that owner; ignored if `grant` is set */
    uint64_t grant; /* one of the hold of that number; 0: any */
    /* If an open transaction guards the lease, it is released when the
     * transaction ends.  Otherwise nothing is done. */
    bool may_owe;
};

/* Undo one acquire of that member of a set, as far as possible without the
 * database; the last one ends renewing and watching.  The member's rc becomes
 * 0, EOWNER or EINUSE. */
void lk_release_add(struct lk_member *member, const struct lk_undo *undo,
                    sqlock_error *err);

/* Release the leases whose last acquire was undone: their members have a hold.
 * This process no longer holds them, even after a failure.  Each member's rc is
 * the result of sqlock_release() for its lock.  Return the result of a set of
 * one lock, and 0 for several. */
int lk_release_end(struct lk_set *set, sqlock_error *err);

/* Return the result of a release that came to rc, from what was known of the
 * lease before. */
int lk_release_outcome(const struct lk_hold *hold, int rc);

/* Undo one acquire of the lock's lease of that grant.  If it was the last, the
 * lease is released, or if a transaction guards it, when that ends. */
void lk_undo(sqlock_lock *lock, uint64_t grant);

#endif
