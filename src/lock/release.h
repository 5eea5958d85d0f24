/*
 * release.h - release N >= 1 leases: each is handed off to the next waiter of
 * this process, or released together with the others in one statement
 */
#ifndef LK_RELEASE_H
#define LK_RELEASE_H

#include "lease/batch.h"
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

/* One lock of a release. */
struct lk_release_part {
    struct lk_slot *slot;
    /* the lease to be released; NULL: there is none, because the acquire was
     * refused or only counted down.  It is used without the mutex. */
    struct lk_hold *hold;
    bool is_handed_off;
    bool is_handed_off_maybe; /* the hand-off got no answer */
    int rc;
    bool is_told; /* the error of the call says why */
};

struct lk_release {
    struct lk_set *set;
    struct lk_release_part *parts;
    struct lk_batch batch;      /* leases to be released in the database */
    struct lk_release_part one; /* parts and batch.items, if count is 1 */
    struct lk_item one_item;
};

/* Begin a release of the locks of a set, which is then filled in for each by
 * lk_release_add(); a part that was not filled in releases nothing.  Return 0,
 * or ENOMEM, after which there is nothing to end. */
int lk_release_begin(struct lk_release *release, struct lk_set *set,
                     sqlock_error *err);

/* Undo one acquire of member i, as far as possible without the database; the
 * last one ends renewing and watching.  The member's rc becomes 0, EOWNER or
 * EINUSE. */
void lk_release_add(struct lk_release *release, size_t i,
                    const struct lk_undo *undo, sqlock_error *err);

/* Release the leases whose last acquire was undone, and free the release.  This
 * process no longer holds them, even after a failure.  Each member's rc is the
 * result of sqlock_release() for its lock.  Return the result of a set of one
 * lock, and 0 for several. */
int lk_release_end(struct lk_release *release, sqlock_error *err);

/* Return the result of a release that came to rc, from what was known of the
 * lease before. */
int lk_release_outcome(const struct lk_hold *hold, int rc);

/* Undo one acquire of the lock's lease of that grant.  If it was the last, the
 * lease is released, or if a transaction guards it, when that ends. */
void lk_undo(sqlock_lock *lock, uint64_t grant);

#endif
