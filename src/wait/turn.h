/*
 * turn.h - get the turn at an entry, first come, first served
 *
 * An entry is a lock within this process, and a part is one acquisition's wish
 * for it.  Only the part that has the turn claims the row, so one contender per
 * process and key reaches the database.
 */
#ifndef LK_TURN_H
#define LK_TURN_H

#include "wait/entry.h"

/* Remove a part from its entry's list, giving up its turn. */
void lk_part_end(struct lk_part *part);

/* Take the turn, or nest in the owner's lease; otherwise queue in the FIFO if
 * that is allowed.  0: *state says which; LK_PART_OUTSIDE: another part has the
 * turn.  ELOST, EEXPIRED, EINUSE, EINVAL, or an outage that waiters share. Once
 * a part is queued, others change part->state. */
int lk_enter(struct lk_part *part, bool may_queue, enum lk_part_state *state,
             sqlock_error *err);

/* Wait in the FIFO for the turn or a lease.  0: *state says which; ETIMEDOUT,
 * ECANCELED, or an outage; LK_SUSPENDED. */
int lk_await_turn(struct lk_part *part, enum lk_part_state *state,
                  sqlock_error *err);

/* Give up the part's turn, or its nested count. */
void lk_step_back(struct lk_part *part);

/* Note the result of an attempt as an outage shared by all waiters of this
 * process; 0: the outage is over. */
void lk_note_outage(struct lk_entry *entry, int rc);

/* Return the first part in the FIFO that is not cancelled (NULL: none); and
 * wake it, to check the holder's lease.  With the entry's mutex held. */
struct lk_part *lk_first_queued(const struct lk_entry *entry);
void lk_wake_first(const struct lk_entry *entry);

/* Take the part out of the FIFO, set its state, and wake its waiter for that
 * reason.  With the entry's mutex held. */
void lk_dequeue(struct lk_part *part, enum lk_part_state state,
                enum lk_wake_reason reason);

#endif
