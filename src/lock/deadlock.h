/*
 * deadlock.h - threads and tasks of this process that wait for each other's
 * locks, or for their own
 *
 * A thread in the FIFO of a lock waits for the thread that holds it or has the
 * turn.  The one that has the turn waits for those who share the lock: for each
 * of them, if it wants the lock alone, or until there are permits for it.  If
 * those wait, too, and so on, and it all depends on the first, nobody would
 * ever go on.  A circle closes only when a thread begins to wait: that thread
 * looks for it then, and is refused.
 *
 * Only an actor is known to wait: a thread, where threads own locks, or whoever
 * the option `actor` names, where handles do.  Such a one may have the lock by
 * another handle: then it waits for itself.  Without that option a handle or a
 * registry is nobody, and a request does not keep its thread from releasing a
 * lock.  Behind a row that another process has alone nothing is seen.
 */
#ifndef LK_DEADLOCK_H
#define LK_DEADLOCK_H

#include "lock/slot.h"

/* Note that the part waits, in its slot's FIFO or with the turn for the row,
 * and look for a circle; not again during the same wait.  If rows that an
 * acquisition keeps are part of it (kept.h), that one gives them back;
 * otherwise part->waiter->is_deadlocked is set.  The caller, in the waiting
 * thread, does not hold the mutex. */
void lk_deadlock_begin(struct lk_part *part);

/* Note that the part does not wait any more. */
void lk_deadlock_end(struct lk_part *part);

/* Set the error of a wait that would never end, and return EDEADLOCK. */
int lk_deadlock(const struct lk_part *part, sqlock_error *err);

#endif
