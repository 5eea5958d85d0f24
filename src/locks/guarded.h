/*
 * guarded.h - what a transaction needs of a lock that it guards, and that the
 * lock knows of it meanwhile
 */
#ifndef LK_GUARDED_H
#define LK_GUARDED_H

#include "lease/lease.h"
#include "locks/registry.h"

/* The caller's lease, to be guarded: until lk_guard_end() it is neither
 * released nor renewed.  0, EOWNER, ELOST, EEXPIRED, EFORK, EINVAL. */
int lk_guard_begin(sqlock_lock *lock, const struct lk_store *store,
                   struct lk_lease *lease, sqlock_error *err);

/* The store of a lock: 0, EINVAL (NULL), EFORK. */
int lk_guarded_store(const sqlock_lock *lock, struct lk_store **out,
                     sqlock_error *err);

/* `lost` is what the guard found out: 0, ELOST or EEXPIRED. */
void lk_guard_end(sqlock_lock *lock, const char *client_id, int lost);

#endif
