/*
 * guarded.h - guard a lock in a transaction: the interface between tx/ and
 * locks/
 */
#ifndef LK_GUARDED_H
#define LK_GUARDED_H

#include "lease/lease.h"
#include "locks/registry.h"

/* Copy the caller's lease to be guarded.  Until lk_guard_end() it is neither
 * released nor renewed.  0, EOWNER, ELOST, EEXPIRED, EFORK, EINVAL. */
int lk_guard_begin(sqlock_lock *lock, const struct lk_store *store,
                   struct lk_lease *lease, sqlock_error *err);

/* Get the store of a lock: 0, EINVAL (NULL), EFORK. */
int lk_guarded_store(const sqlock_lock *lock, struct lk_store **out,
                     sqlock_error *err);

/* End a guard.  `lost` is the state of the lease that the guard found: 0, ELOST
 * or EEXPIRED. */
void lk_guard_end(sqlock_lock *lock, const char *client_id, int lost);

#endif
