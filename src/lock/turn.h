/*
 * turn.h - get the turn at a slot, first come, first served
 *
 * A slot is a lock within this process, and a part is the wish of one
 * acquisition for that lock.  Only the part that has the turn claims the row,
 * so one contender per process and key reaches the database.
 */
#ifndef LK_TURN_H
#define LK_TURN_H

#include "lock/slot.h"

/* Remove the part from its slot's list, and give up the turn if the part has
 * it. */
void lk_part_end(struct lk_part *part);

/* Take the turn, or nest in the owner's lease; otherwise, if may_queue, queue
 * in the FIFO.  Return 0, and in *state LK_PART_TURN, LK_PART_NESTED or
 * LK_PART_QUEUED; or LK_PART_OUTSIDE, if another part has the turn and
 * may_queue is false.  Or return EBUSY, ELOST, EEXPIRED, EINUSE, EINVAL, or the
 * code of an outage that the waiters share.  Once a part is queued, other
 * threads may change part->state. */
int lk_enter(struct lk_part *part, bool may_queue, enum lk_part_state *state,
             sqlock_error *err);

/* Wait in the FIFO for the turn or a lease.  Return 0, and in *state
 * LK_PART_TURN, LK_PART_HELD or LK_PART_OUTSIDE (enter again); or ETIMEDOUT,
 * ECANCELED, EDEADLOCK, or the code of an outage; or LK_SUSPENDED, if a request
 * must wait, or LK_ALARM: call again. */
int lk_await_turn(struct lk_part *part, enum lk_part_state *state,
                  sqlock_error *err);

/* Give up the turn if the part has it.  A nested acquire is undone before, by
 * the acquisition's `undo`. */
void lk_step_back(struct lk_part *part);

/* Note that an attempt gave rc, the code of an outage, which the waiters of
 * this process for the slot share; rc 0 ends the outage.  Wake the waiters
 * that set fail_fast.  The caller does not hold the slot's mutex. */
void lk_note_outage(struct lk_slot *slot, int rc);

/* lk_first_queued(): return the first part in the FIFO whose wait is not
 * cancelled (NULL: none).  lk_wake_first(): wake that part's waiter, to check
 * the holder's lease.  The caller holds the slot's mutex. */
struct lk_part *lk_first_queued(const struct lk_slot *slot);
void lk_wake_first(const struct lk_slot *slot);

/* Take the part out of the FIFO, set its state, and wake its waiter for that
 * reason.  The caller holds the slot's mutex. */
void lk_dequeue(struct lk_part *part, enum lk_part_state state,
                enum lk_wake_reason reason);

#endif
