/*
 * acquire.h - acquire and release locks, and let the registry's threads renew
 * and watch them meanwhile
 */
#ifndef LK_ACQUIRE_H
#define LK_ACQUIRE_H

#include "locks/set.h"
#include "wait/acquisition.h"
#include "wait/release.h"

/* Run an acquisition of the set, as lk_acquisition_run(), and begin to renew
 * and watch the granted locks. */
int lk_take(struct lk_set *set, struct lk_acquisition *a, sqlock_error *err);

/* Undo one acquire of a member for that owner, as far as possible without the
 * database; then release all such leases.  Results as sqlock_release_many(). */
void lk_begin_give_back(struct lk_set *set, struct lk_release *release,
                        size_t i, uint64_t owner, sqlock_error *err);
int lk_end_give_back(struct lk_set *set, struct lk_release *release,
                     sqlock_error *err);

/* Do both for one lock.  Results as sqlock_release(). */
int lk_give_back(sqlock_lock *lock, uint64_t owner, sqlock_error *err);

#endif
