/*
 * claim.h - one attempt of an acquisition: claim the rows of the parts that
 * have the turn
 */
#ifndef LK_CLAIM_H
#define LK_CLAIM_H

#include "lock/acquisition.h"

/* Put a lease into the batch for each part before a->reach that has its
 * turn. */
void lk_claim_collect(struct lk_acquisition *a);

/* Put a lease for the part `first` alone into the batch: if its claim is
 * refused, it gets a ticket in the row. */
void lk_claim_collect_first(struct lk_acquisition *a);

/* Give up the bell of leases that were set aside (hold.h), before the part that
 * has the turn claims the row or gives the turn up.  That may take a round
 * trip, so it is not done where a request begins; is_outage: the session ends
 * instead. */
void lk_clear_aside(struct lk_slot *slot, bool is_outage);

/* Do so at the locks that are to be claimed. */
void lk_claim_clear_aside(const struct lk_acquisition *a);

/* Claim the batch; the caller has set *taken to NULL.  Return 0 if the database
 * answered.  If *taken is still NULL then, all were granted.  Otherwise *taken
 * is the first part whose row is taken, and only those are kept that stay
 * (kept.h).  Other results as sqlock_acquire_many(). */
int lk_claim_all(struct lk_acquisition *a, struct lk_part **taken,
                 sqlock_error *err);

/* The part `first` has joined a share, and is to look whether others wait:
 * with may_read from the row, or else leave that to the next claim. */
void lk_claim_look(struct lk_acquisition *a, bool may_read);

/* Note at each granted lock whether other processes wait for it. */
void lk_claim_note_contention(const struct lk_acquisition *a);

/* Return whether the claim got each lease as its part wants it: not alone, for
 * services that are not to have it any more, what is to be shared. */
bool lk_claim_is_as_wanted(const struct lk_acquisition *a);

/* Release what the claim got, which came to rc.  Return rc, or EUNCERTAIN if
 * that failed. */
int lk_claim_undo(struct lk_acquisition *a, int rc, sqlock_error *err);

/* Keep the rows that were granted, while the acquisition waits for others. */
void lk_claim_keep(struct lk_acquisition *a);

/* Make the parts holders of the leases that were granted. */
void lk_claim_hold(struct lk_acquisition *a);

/* Count the result of each lock, for the statistics, of an acquisition that is
 * over. */
void lk_claim_count(const struct lk_acquisition *a);

/* Return whether the registry has had no lock yet.  A program that is started
 * for one lock is then in the queue after the short claim and one statement;
 * where each that asks needs a session of its own, that would cost more than it
 * saves. */
bool lk_claim_is_first(const struct lk_acquisition *a);

#endif
