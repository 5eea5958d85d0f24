/*
 * peers.h - give Spring services that contend for a lock their share of its
 * turns, which is by head, and our own processes a chance where there are no
 * tickets
 *
 * A service polls, has no ticket, and is not told of a release.  Where m of
 * them were seen lately and n processes of ours wait or hold, each of ours owes
 * them m/n of a turn for each turn of its own.  A process that owes a whole one
 * lets services go first when its own turn comes: it *opens* the row, which is
 * free for them until one has come, for the longest time between two attempts
 * at most.  Then it takes the row back, puts the tickets into it that the
 * service has deleted with it, and has paid as many turns as it has seen.  If
 * none has come, there is none.
 *
 * A service that never had the lock cannot be seen.  Where none was, a lock for
 * which others of ours wait is opened once in some 10 s.
 *
 * With waiting=poll our other processes poll like services and cannot be seen:
 * there the lock is left free for one poll after each 300 ms of leases.  While
 * no process uses these pauses, the 300 ms grow up to 4.8 s.
 */
#ifndef LK_PEERS_H
#define LK_PEERS_H

#include "lease/row.h"
#include "lock/slot.h"

/* The part that has the turn calls these functions, or the poller for it. */

/* --- while the part waits --- */

/* Return for how many ns a row that the part waits for is not to be claimed, as
 * lk_row_blocked_ns(), and note what it tells of services. */
int64_t lk_peers_look(struct lk_slot *slot, const struct lk_row *row);

/* Note that a claim was refused because of that row.  Return whether a service
 * has it or may come, so that the row is to be polled. */
bool lk_peers_refused(struct lk_slot *slot, const struct lk_row *row);

/* Return how long a part that polls may pause before it looks again, so that it
 * sees each turn of a service; LK_NEVER: no service has the row or may come. */
int64_t lk_peers_pause_ns(const struct lk_slot *slot);

/* Return whether the part is to try the claim although a service had the row
 * just now: that deletes it between two turns only. */
bool lk_peers_may_try(const struct lk_slot *slot);

/* Forget what the present wait has seen. */
void lk_peers_end_wait(struct lk_slot *slot);

/* --- when it has the row --- */

/* Note a granted claim. */
void lk_peers_granted(struct lk_slot *slot, const struct lk_lease *lease);

/* Count a lease of ours, which was held for that time, against our share. */
void lk_peers_charge(struct lk_slot *slot, int64_t held_ns);

/* Return whether services, or processes that poll, are due the lock before our
 * next turn. */
bool lk_peers_are_due(const struct lk_slot *slot);

/* Return whether services are to have the row that the part was granted before
 * the part, and there is time for that; then note the tickets in it. */
bool lk_peers_go_first(struct lk_part *part);

/* Give the lease that the part was granted back, and open the row.  Then the
 * part waits for it, with a new ticket.  Return 0, or as lk_batch_release(). */
int lk_peers_open(struct lk_part *part, sqlock_error *err);

/* --- where our own processes poll --- */

/* Return whether they are due a pause. */
bool lk_peers_must_pause(const struct lk_slot *slot);

/* Begin and end a pause.  The caller leaves the lock free from the first call
 * until *until_ns, CLOCK_MONOTONIC; the second one finds out whether another
 * process took the lock meanwhile.  Both return as lk_row_read(). */
int lk_peers_begin_pause(struct lk_slot *slot, int64_t *until_ns,
                         sqlock_error *err);
int lk_peers_end_pause(struct lk_slot *slot, sqlock_error *err);

#endif
