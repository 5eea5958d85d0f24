/*
 * turn.h - getting the turn at an entry: first come, first served
 *
 * Nobody but whose turn it is claims the row, so one contender of a process
 * and key reaches the database.
 */
#ifndef LK_TURN_H
#define LK_TURN_H

#include "wait/entry.h"

/* The part comes into the entry's list, and leaves it with the turn and the
 * count it has.  A part that was granted has left it. */
void lk_part_begin(struct lk_part *part, struct lk_entry *entry, uint64_t owner,
                   struct lk_waiter *waiter);
void lk_part_end(struct lk_part *part);

/* Get the turn, or count one more of the owner's lease; or else, if it may,
 * queue.  0: *state says which, and is LK_PART_OUTSIDE where another has the
 * turn; ELOST, EEXPIRED, EINUSE, EINVAL; an outage that waiters share.  Of a
 * queued part others change part->state from here on. */
int lk_enter(struct lk_part *part, bool may_queue, enum lk_part_state *state,
             sqlock_error *err);

/* In the FIFO, until the turn, the lease or its end: 0, and *state says what
 * came; ETIMEDOUT, ECANCELED, or an outage; LK_SUSPENDED. */
int lk_await_turn(struct lk_part *part, enum lk_part_state *state,
                  sqlock_error *err);

/* What it has of the entry is given up: the turn, the count. */
void lk_step_back(struct lk_part *part);

/* Whose turn it is has met an outage of the database, which waiters of this
 * process share: the result of its attempt; 0: it is over. */
void lk_note_outage(struct lk_entry *entry, int rc);

/* With the entry's mutex held: the first one in the FIFO that is not cancelled
 * (NULL: none), and the wake-up for it to look at the holder's lease. */
struct lk_part *lk_first_queued(const struct lk_entry *entry);
void lk_wake_first(const struct lk_entry *entry);

/* With the mutex held: that part leaves the FIFO, for that state and reason. */
void lk_dequeue(struct lk_part *part, enum lk_part_state state,
                enum lk_wake_reason reason);

#endif
