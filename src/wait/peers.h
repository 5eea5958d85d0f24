/*
 * peers.h - leaving a chance to Spring services that want the same lock, and
 * without a wait queue to other processes of ours
 *
 * A service asks every 100 ms and hears of no release; our own waiters hear of
 * each, and hand the lock on.  So where a service has been seen to hold a lock,
 * ours leave it free for one pause of a service's after each so long that they
 * have had it.  Without a service nothing is ever left, but with waiting=poll,
 * where other processes of ours wait like services and are not seen: there the
 * lock is left free for a poll after each 300 ms of leases, and while nobody
 * comes after up to 4.8 s.
 */
#ifndef LK_PEERS_H
#define LK_PEERS_H

#include "lease/row.h"
#include "wait/entry.h"

/* All that follows by the one whose turn it is. */

/* After a wait: what it saw of the row. */
void lk_peers_note(struct lk_entry *entry, struct lk_observed *seen);

/* Before lk_hold(): that claim was granted; one before it may have been
 * refused. */
void lk_peers_granted(struct lk_entry *entry, const struct lk_lease *lease,
                      bool was_refused);

/* A lease of ours is about to end. */
void lk_peers_charge(struct lk_entry *entry);

/* Whether the lock is to be left free before the next claim of ours. */
bool lk_peers_are_due(const struct lk_entry *entry);

/* Leave it free until that point of CLOCK_MONOTONIC, and see then whether
 * another took it: 0, or as lk_row_read(). */
int lk_peers_begin_pause(struct lk_entry *entry, int64_t *until_ns,
                         sqlock_error *err);
int lk_peers_end_pause(struct lk_entry *entry, sqlock_error *err);

#endif
