/*
 * claim.h - one attempt of an acquisition: claim the rows of the parts that
 * have the turn
 */
#ifndef LK_CLAIM_H
#define LK_CLAIM_H

#include "wait/acquisition.h"

/* Put a lease into the batch for each part that has its turn. */
void lk_claim_collect(struct lk_acquisition *a);

/* Claim the batch; the caller has set *taken to NULL.  Return 0 if the database
 * answered.  If *taken is still NULL then, all were granted.  Otherwise *taken
 * is the first part whose row is taken, and nothing is held.  Other results as
 * sqlock_acquire_many(). */
int lk_claim_all(struct lk_acquisition *a, struct lk_part **taken,
                 sqlock_error *err);

/* Limit barging: if the claim met waiters of the database's queue, let the
 * lock's next `times` acquisitions queue before they claim. */
void lk_claim_note_contention(const struct lk_acquisition *a, uint32_t times);

/* Make the parts holders of the leases that were granted. */
void lk_claim_hold(struct lk_acquisition *a);

/* Count the result of each lock, for the statistics, of an acquisition that is
 * over. */
void lk_claim_count(const struct lk_acquisition *a);

#endif
