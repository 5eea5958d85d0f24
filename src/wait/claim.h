/*
 * claim.h - one attempt of an acquisition: claim the rows of the parts that
 * have the turn
 */
#ifndef LK_CLAIM_H
#define LK_CLAIM_H

#include "wait/acquisition.h"

/* Put a lease into the batch for each part that has its turn. */
void lk_claim_collect(struct lk_acquisition *a);

/* Claim the batch.  0: each part's rc tells whether it was granted (all, or
 * with `partial` some); or *taken is the first part whose row is taken, and
 * none was granted.  Other results as sqlock_acquire_many(). */
int lk_claim_all(struct lk_acquisition *a, struct lk_part **taken,
                 sqlock_error *err);

/* Limit barging: if the claim met waiters of the database's queue, the next
 * `times` acquisitions queue first. */
void lk_claim_note_contention(const struct lk_acquisition *a, uint32_t times);

/* Turn the granted parts into leases, and give up the turns of the others. */
void lk_claim_hold(struct lk_acquisition *a);

/* Count the result of each lock of an acquisition that is over. */
void lk_claim_count(const struct lk_acquisition *a);

#endif
