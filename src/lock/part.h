/*
 * part.h - the parts of a slot: their states, the FIFO, and how one becomes a
 * holder
 */
#ifndef LK_PART_H
#define LK_PART_H

#include "lock/slot.h"

/* The caller of all functions holds the mutex. */

/* Change the state; part.c has the legal transitions. */
void lk_part_go_to(struct lk_part *part, enum lk_part_state state);

/* Put the part at the end of the slot's list; and take it out. */
void lk_part_list(struct lk_part *part);
void lk_part_unlist(struct lk_part *part);

/* Return the first part in the FIFO whose wait is not cancelled; NULL: none. */
struct lk_part *lk_first_queued(const struct lk_slot *slot);

/* Wake the first part's waiter, to look at the holder's lease, if it would not
 * look by the time at which that is overdue. */
void lk_wake_in_time(const struct lk_slot *slot);

/* Take the part out of the FIFO, and wake its waiter for that reason;
 * lk_part_retry(): to enter again. */
void lk_part_dequeue(struct lk_part *part, enum lk_part_state state,
                     enum lk_wake_reason reason);
void lk_part_retry(struct lk_part *part);

/* Let all queued parts enter again, to nest in the lease, which the whole
 * registry shares. */
void lk_let_all_in(struct lk_slot *slot);

/* Make the part the holder of its lease: its turn, or the hand-off to it, is
 * over. */
void lk_part_holds(struct lk_part *part, const struct lk_lease *lease);

/* Return the hold whose share the part may join; NULL: none. */
const struct lk_hold *lk_joinable(const struct lk_part *part);

/* Let the part, before which no other part waits and no service is due, join a
 * share of this process, if that may be; then it is a holder.  While it is not
 * known whether anybody waits in another process, at most LK_HANDOFFS_MAX join
 * in a row; the last of them has `asks` set, and calls lk_joined() with the
 * answer, before which no other part begins.  A reader relies on the share for
 * its own TTL at most, and joins if 7/8 of that are left; or half of it, where
 * its lease is renewed. */
bool lk_join(struct lk_part *part);

#endif
