/*
 * release.h - the end of N >= 1 leases: each goes to the next waiter of this
 * process, or, with all others in one statement, back to the database
 */
#ifndef LK_RELEASE_H
#define LK_RELEASE_H

#include "lease/batch.h"
#include "wait/entry.h"

/* State of one lock of a release. */
enum lk_release_state {
    LK_RELEASE_OVER, /* nothing is left to do: counted one less, refused, or
                        done; rc */
    LK_RELEASE_TURN, /* the outermost one: its lease is copied, and it is its
                        turn until the lease has ended */
    LK_RELEASE_ASIDE /* of a lease that was set aside (overdue.h): the lock is
                        another's by now */
};

struct lk_release_part {
    struct lk_entry *entry;
    enum lk_release_state state;
    bool has_lease; /* it was the outermost one */
    struct lk_lease lease;
    uint64_t grant;
    int lost;                 /* before the release: 0, ELOST, EEXPIRED */
    struct lk_part *next;     /* that a hand-off was tried to; NULL: none */
    bool is_handed_off_maybe; /* that got no answer */
    int rc;
};

struct lk_release {
    struct lk_store *store;
    struct lk_release_part *parts; /* by key */
    size_t count;
    struct lk_batch batch;      /* of those for the database */
    struct lk_release_part one; /* of a single one, and its item */
    struct lk_item one_item;
};

/* A release of up to that many locks, each of which is to be begun by
 * lk_release_add(), sorted by key; those that are not stay as they are.
 * ENOMEM. */
int lk_release_begin(struct lk_release *release, struct lk_store *store,
                     size_t count, sqlock_error *err);

/* Undo one acquire of that owner's, as far as that can be done without the
 * database.  The part's rc: 0, EOWNER, EINUSE. */
struct lk_release_part *lk_release_add(struct lk_release *release, size_t i,
                                       struct lk_entry *entry, uint64_t owner,
                                       sqlock_error *err);

/* End the leases; the locks go on whatever the results, which are in the parts,
 * as those of sqlock_release().  The first of them that is not 0. */
int lk_release_run(struct lk_release *release, sqlock_error *err);
void lk_release_end(struct lk_release *release);

#endif
