/*
 * release.h - release N >= 1 leases: each is handed off to the next waiter of
 * this process, or released with all others in one statement
 */
#ifndef LK_RELEASE_H
#define LK_RELEASE_H

#include "lease/batch.h"
#include "wait/entry.h"

/* State of one lock of a release. */
enum lk_release_state {
    LK_RELEASE_OVER, /* done, refused, or only counted down: rc */
    /* to be released: the lease is copied, and the part has the turn until
     * then */
    LK_RELEASE_TURN,
    /* an overdue lease that was set aside (overdue.h): the lock may have
     * another holder by now */
    LK_RELEASE_ASIDE
};

struct lk_release_part {
    struct lk_entry *entry;
    enum lk_release_state state;
    bool has_lease; /* the last acquire was undone */
    struct lk_lease lease;
    uint64_t grant;
    int lost;                 /* before the release: 0, ELOST, EEXPIRED */
    bool is_handed_off_maybe; /* the hand-off got no answer */
    int rc;
};

struct lk_release {
    struct lk_store *store;
    struct lk_release_part *parts; /* sorted by key */
    size_t count;
    struct lk_batch batch;      /* of leases to be released in the database */
    struct lk_release_part one; /* used when count is 1, with its item */
    struct lk_item one_item;
};

/* Begin a release of up to `count` locks.  Add each with lk_begin_release(), to
 * the parts in order of the keys; locks not added are not released.  ENOMEM. */
int lk_release_begin(struct lk_release *release, struct lk_store *store,
                     size_t count, sqlock_error *err);

/* End the leases.  The locks are free for others whatever the results, which
 * each part's rc holds, as sqlock_release() returns them.  Return the first
 * that is not 0. */
int lk_release_run(struct lk_release *release, sqlock_error *err);
void lk_release_end(struct lk_release *release);

#endif
