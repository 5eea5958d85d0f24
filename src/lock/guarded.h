/*
 * guarded.h - mark a lock that a transaction guards: the interface between tx/
 * and lock/
 */
#ifndef LK_GUARDED_H
#define LK_GUARDED_H

#include "lease/lease.h"
#include "lock/registry.h"

/* Begin a guard, and copy the calling owner's lease.  Until lk_guard_end() the
 * lease is neither released nor renewed, and the lock is not freed.  `store` is
 * the transaction's.  Return 0, EOWNER, ELOST, EEXPIRED, EFORK, or EINVAL if
 * the lock is NULL or of another store. */
int lk_guard_begin(sqlock_lock *lock, const struct lk_store *store,
                   struct lk_lease *lease, sqlock_error *err);

/* Begin a guard for a statement that finds the lease only if it has the lock
 * alone.  Return a result of lk_guard_begin(), or ENOTSUP if a downgrade got no
 * answer. */
int lk_guard_begin_alone(sqlock_lock *lock, const struct lk_store *store,
                         struct lk_lease *lease, sqlock_error *err);

/* Get the store of a lock.  Return 0, EINVAL if the lock is NULL, or EFORK. */
int lk_guarded_store(const sqlock_lock *lock, struct lk_store **out,
                     sqlock_error *err);

/* Wait until no renewal of the lease is under way that the caller guards, for a
 * statement of its own: none begins now.  Copy the lease, or return EINUSE if a
 * transaction guards it, too. */
int lk_guard_settle(const sqlock_lock *lock, struct lk_lease *lease,
                    sqlock_error *err);

/* Return the hold of the lease with that CLIENT_ID, which is guarded: so it is
 * neither released nor set aside, but its owner may have abandoned it.  The
 * caller holds the mutex. */
struct lk_hold *lk_guarded_hold(const sqlock_lock *lock, const char *client_id);

/* End a guard for one statement about the lease, which came to rc.  Return rc;
 * or ELOST or EEXPIRED if it was carried out and the lease is over: it was
 * given up meanwhile, or the answer came too late. */
int lk_guard_end_statement(sqlock_lock *lock, const char *client_id, int rc,
                           sqlock_error *err);

/* End a guard of the lease with that CLIENT_ID.  `lost` is the state in which
 * the guard found the lease: 0, ELOST or EEXPIRED; a lost lease is marked as
 * lost.  If the holder's last acquire was undone meanwhile (sqlock_abandon()),
 * the last guard releases the lease; the transaction has ended by then. */
void lk_guard_end(sqlock_lock *lock, const char *client_id, int lost);

#endif
