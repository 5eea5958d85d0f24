/*
 * seen.h - until when the lease lasts that this process has last seen in a
 * lock's row, and whether somebody has deleted that row meanwhile
 *
 * A release leaves the row of sqlock's layout where it is.  So a row that is
 * gone although a lease of sqlock's was seen in it was deleted by hand, and the
 * holder, which does not know, may rely on the lock until its lease ends: who
 * has seen it waits for that.  A Spring service deletes the row with its
 * release.
 */
#ifndef LK_SEEN_H
#define LK_SEEN_H

#include "lease/row.h"
#include "lock/slot.h"

/* Note how the row was read.  Called by the part that has the turn, or for
 * it. */
void lk_seen_note(struct lk_slot *slot, const struct lk_row *row);

/* Forget what was seen: a claim was answered. */
void lk_seen_forget(struct lk_slot *slot);

/* Return when the slot's ticket may take the row if nobody rings,
 * CLOCK_MONOTONIC. */
int64_t lk_seen_own_time(const struct lk_slot *slot);

/* Return for how many ns the row, which is gone, is not to be claimed; 0: it is
 * there, or that time is over. */
int64_t lk_seen_left_ns(const struct lk_slot *slot);

/* Read the row if its lease has not ended by what was seen, and note how it is,
 * unless that takes too long: before a claim that nobody has rung for. */
void lk_seen_look(struct lk_slot *slot);

#endif
