/*
 * release.h - release N >= 1 leases: each is handed off to the next waiter of
 * this process, or released together with the others in one statement
 */
#ifndef LK_RELEASE_H
#define LK_RELEASE_H

#include "lease/batch.h"
#include "lock/slot.h"

/* State of one lock of a release. */
enum lk_release_state {
    LK_RELEASE_OVER, /* done, refused or only counted down: see rc */
    /* to be released: `lease` is a copy, and the part has the turn until the
     * lease has ended */
    LK_RELEASE_TURN,
    /* an overdue lease that was set aside (overdue.h): the lock may have
     * another holder by now */
    LK_RELEASE_ASIDE
};

/* Which acquire to undo. */
struct lk_undo {
    uint64_t owner; /* one of that owner; ignored if `grant` is set */
    uint64_t grant; /* one of the acquisition of that number; 0: any */
    /* If an open transaction guards the lease, it is released when the
     * transaction ends.  Otherwise nothing is done. */
    bool may_owe;
};

struct lk_release_part {
    struct lk_slot *slot;
    enum lk_release_state state;
    bool has_lease; /* the last acquire was undone: `lease` is set */
    bool is_owed;   /* it was undone, and the release is due with the guard */
    struct lk_lease lease;
    uint64_t grant;           /* if has_lease or is_owed */
    int lost;                 /* before the release: 0, ELOST, EEXPIRED */
    bool is_handed_off_maybe; /* the hand-off got no answer */
    int rc;
};

struct lk_release {
    struct lk_store *store;
    struct lk_release_part *parts; /* sorted by key */
    size_t count;
    struct lk_batch batch;      /* leases to be released in the database */
    struct lk_release_part one; /* parts and batch.items, if count is 1 */
    struct lk_item one_item;
};

/* Begin a release of up to `count` locks.  Then fill in the parts, in order of
 * the keys, each by lk_begin_release(); a part that was not filled in releases
 * nothing.  Return 0, or ENOMEM, after which there is nothing to end. */
int lk_release_begin(struct lk_release *release, struct lk_store *store,
                     size_t count, sqlock_error *err);

/* Release the leases that lk_begin_release() has filled in.  This process no
 * longer holds them, even after a failure.  Each part's rc becomes the
 * result of sqlock_release() for its lock; return the first rc that is not 0.
 * lk_release_end() frees the parts afterwards. */
int lk_release_run(struct lk_release *release, sqlock_error *err);
void lk_release_end(struct lk_release *release);

#endif
