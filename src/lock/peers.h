/*
 * peers.h - leave a chance to Spring services that contend for a lock, and to
 * our own processes where there are no tickets
 *
 * A service polls every 100 ms and is not notified of a release; our own
 * waiters are notified, and hand the lock off.  Where a service has been seen
 * to hold a lock, our processes therefore leave the lock free for one polling
 * pause after each share of time.  Where none has been seen, a lock for which
 * others of ours wait is left free once in some 10 s, so that a service that
 * waits can be seen.  With waiting=poll our other processes poll like services
 * and cannot be seen: there the lock is left free for one poll after each
 * 300 ms of leases.  While no process uses these pauses, the 300 ms grow up to
 * 4.8 s.
 */
#ifndef LK_PEERS_H
#define LK_PEERS_H

#include "lease/row.h"
#include "lock/slot.h"

/* The part that has the turn calls these functions. */

/* Return for how many ns a row that the part waits for is not to be claimed, as
 * lk_row_blocked_ns(), and note in part->saw_peer whether a Spring service has
 * it. */
int64_t lk_peers_look(struct lk_part *part, const struct lk_row *row);

/* Note whether the part's wait has seen a Spring service hold the row, and
 * clear part->saw_peer. */
void lk_peers_note(struct lk_part *part);

/* Note a granted claim, before lk_hold_begin().  was_refused: an earlier claim
 * of the acquisition was refused. */
void lk_peers_granted(struct lk_slot *slot, const struct lk_lease *lease,
                      bool was_refused);

/* Count a lease of ours, which was held for that time, against our share. */
void lk_peers_charge(struct lk_slot *slot, int64_t held_ns);

/* Return whether the lock is to be left free before our next claim. */
bool lk_peers_are_due(const struct lk_slot *slot);

/* Begin and end a pause.  The caller leaves the lock free from the first call
 * until *until_ns, CLOCK_MONOTONIC; the second one finds out whether another
 * process took the lock meanwhile.  Both return as lk_row_read(). */
int lk_peers_begin_pause(struct lk_slot *slot, int64_t *until_ns,
                         sqlock_error *err);
int lk_peers_end_pause(struct lk_slot *slot, sqlock_error *err);

#endif
