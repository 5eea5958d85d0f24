/*
 * claim.h - the claim of an acquisition: all rows in one statement, once
 */
#ifndef LK_CLAIM_H
#define LK_CLAIM_H

#include "wait/acquisition.h"

/* The leases to claim: of the parts that have a turn. */
void lk_claim_collect(struct lk_acquisition *a);

/* Claim them.  0: as the parts say, all of them, or with `partial` some; or
 * *taken is the first whose row is taken, and none is granted; as
 * sqlock_acquire_many(). */
int lk_claim_all(struct lk_acquisition *a, struct lk_part **taken,
                 sqlock_error *err);

/* After that: one that overtook others who wait in the database goes behind
 * them the next so many times. */
void lk_claim_note_contention(const struct lk_acquisition *a, uint32_t times);

/* The turns that were granted become leases, the others are given up. */
void lk_claim_hold(struct lk_acquisition *a);

/* It is over: count what became of each of its locks. */
void lk_claim_count(const struct lk_acquisition *a);

#endif
