/*
 * peers.h - leave a lock to Spring services now and then, which contend for it
 *
 * A service polls, has no ticket, and is not told of a release.  So a process
 * that waits for a lock which others of ours want, or share, has it *for
 * services* now and then: it acquires the lock alone, in its turn, and *opens*
 * the row, which is then free for services and for nobody else for 110 ms, one
 * poll interval of theirs.  While they come, they have that time; then the
 * process takes the row back, with the tickets that the services have deleted
 * with it, and its own wait goes on: for one lock or many, alone or shared.
 *
 * One process at a time does so for a lock: the one that has its *account*, a
 * lease in a row of its own, which no service deletes.  If none came, the row
 * is opened again after 2 s, 4 s, ... 9 s.  If services came, it is when the
 * process has had as many turns of its own as each of them had.
 */
#ifndef LK_PEERS_H
#define LK_PEERS_H

#include "lease/row.h"
#include "lock/slot.h"

/* The part that has the turn calls these functions, or the poller for it. */

/* Return whether services are due the lock before our next turn, as far as is
 * known without a statement. */
bool lk_peers_are_due(const struct lk_slot *slot);

/* Return whether the part is to claim the lock for services, if it claims no
 * other one now: they are due, and this process has the account. */
bool lk_peers_begin(struct lk_part *part);

/* Return until when the part waits to have the lock for services, while it has
 * not opened the row: those who share it may stay for long.  LK_NEVER: there is
 * no such time. */
int64_t lk_peers_until_ns(const struct lk_slot *slot);

/* --- while the part waits --- */

/* Return for how many ns a row that the part waits for is not to be claimed, as
 * lk_row_blocked_ns(), and note what it tells of services. */
int64_t lk_peers_look(struct lk_slot *slot, const struct lk_row *row);

/* Note that a claim was refused because of that row.  Return whether a service
 * has it or may come, so that the row is to be polled. */
bool lk_peers_refused(struct lk_part *part, const struct lk_row *row);

/* Return how long a part that polls may pause before it looks again; LK_NEVER:
 * no service has the row or may come. */
int64_t lk_peers_pause_ns(const struct lk_slot *slot);

/* Return whether the part is to try the claim although a service had the row
 * just now: that deletes it between two turns only. */
bool lk_peers_may_try(const struct lk_slot *slot);

/* Forget what the present wait has seen. */
void lk_peers_end_wait(struct lk_slot *slot);

/* --- when it has the row --- */

/* Note a granted claim.  is_turn: the acquisition is over with it. */
void lk_peers_granted(struct lk_part *part, bool is_turn);

/* Return whether the part has the lock for services, and is to open the row;
 * then note the tickets in it. */
bool lk_peers_go_first(struct lk_part *part);

/* Give the lease that the part was granted back, and open the row.  Then the
 * part waits for it, with a new ticket.  Return 0, or as lk_batch_release(). */
int lk_peers_open(struct lk_part *part, sqlock_error *err);

#endif
