/*
 * guarded.h - mark a lock that a transaction guards: the interface between tx/
 * and lock/
 */
#ifndef LK_GUARDED_H
#define LK_GUARDED_H

#include "lease/lease.h"
#include "lock/registry.h"

/* Begin a guard, which finds the lease only if it has the lock alone, and copy
 * the calling owner's lease.  Until lk_guard_end() the lease is neither
 * released nor renewed, and the lock is not freed.  `store` is the
 * transaction's.  Return 0, EOWNER, ELOST, EEXPIRED, EFORK, EINVAL if the lock
 * is NULL or of another store, or ENOTSUP if the lock is shared, or a downgrade
 * got no answer. */
int lk_guard_begin(sqlock_lock *lock, const struct lk_store *store,
                   struct lk_lease *lease, sqlock_error *err);

/* Get the store of a lock.  Return 0, EINVAL if the lock is NULL, or EFORK. */
int lk_guarded_store(const sqlock_lock *lock, struct lk_store **out,
                     sqlock_error *err);

/* End a guard of the lease with that CLIENT_ID.  `lost` is the state in which
 * the guard found the lease: 0, ELOST or EEXPIRED; a lost lease is marked as
 * lost.  If the holder's last acquire was undone meanwhile (sqlock_abandon()),
 * the last guard releases the lease; the transaction has ended by then. */
void lk_guard_end(sqlock_lock *lock, const char *client_id, int lost);

#endif
