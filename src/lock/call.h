/*
 * call.h - calls about a held lease that send a statement of their own: publish
 * a text, downgrade
 *
 * Meanwhile other threads may use the lease, where it is not a thread's.  A
 * release waits until the call is over.  A downgrade changes what statements
 * say about the lease, so renewals, guards and other calls wait for it, and it
 * for those that are under way.
 */
#ifndef LK_CALL_H
#define LK_CALL_H

#include "lock/hold.h"

/* Result of lk_call_begin(): a downgrade has nothing to change. */
#define LK_CALL_SHARED 1

/* Begin a call, and copy the calling owner's lease.  Until lk_call_end() the
 * lease is not set aside, and the lock is not freed.  Return 0;
 * LK_CALL_SHARED; EOWNER, ELOST, EEXPIRED, EFORK, EINVAL (the lock, or a text
 * of one who shares it), EINUSE (a transaction guards the lease), or ENOTSUP
 * (a text, and a downgrade got no answer). */
int lk_call_begin(sqlock_lock *lock, bool is_downgrade, struct lk_hold **out,
                  struct lk_lease *lease, sqlock_error *err);

/* End a call, which came to rc.  Return rc; or ELOST or EEXPIRED if it was
 * carried out and the lease is over: it was given up meanwhile, or the answer
 * came too late. */
int lk_call_end(sqlock_lock *lock, struct lk_hold *hold, int rc,
                sqlock_error *err);

/* Set the error of a lease that a downgrade may have made a share, and return
 * ENOTSUP. */
int lk_call_unclear(sqlock_error *err);

/* --- what waits for calls; the caller holds the mutex, which is released
 * meanwhile --- */

/* Wait until no downgrade of that owner's lease is under way.  Return whether
 * there was one. */
bool lk_call_await_downgrade(const struct lk_slot *slot, uint64_t owner);

/* Wait until no call about the lease is under way, of which none begins now.
 * The caller has a pin of the hold. */
void lk_call_await(const struct lk_hold *hold);

#endif
