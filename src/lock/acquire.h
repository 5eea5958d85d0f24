/*
 * acquire.h - acquire and release locks, and have the registry's threads renew
 * and watch them meanwhile
 */
#ifndef LK_ACQUIRE_H
#define LK_ACQUIRE_H

#include "lock/set.h"
#include "lock/acquisition.h"
#include "lock/give_back.h"

/* Run an acquisition of the set by lk_acquisition_run(), and begin to renew and
 * watch the granted locks; if that fails, release them.  Each member's rc is
 * its own result.  Return LK_SUSPENDED: call this again when the request is
 * woken; or a result of sqlock_acquire_many(). */
int lk_take(struct lk_set *set, struct lk_acquisition *a, sqlock_error *err);

/* Add a lock as part i of an acquisition that has begun. */
void lk_take_part(struct lk_acquisition *a, size_t i, sqlock_lock *lock,
                  uint64_t owner);

/* Undo one acquire of member i, as far as possible without the database.  The
 * member's rc is the result, as of lk_begin_release(). */
void lk_begin_give_back(struct lk_set *set, struct lk_release *release,
                        size_t i, const struct lk_undo *undo,
                        sqlock_error *err);

/* Hand off, or release in the database, the leases whose last acquire was
 * undone, and free the release.  Each member's rc is its own result.  Return
 * the result of a set of one lock, and 0 for several. */
int lk_end_give_back(struct lk_set *set, struct lk_release *release,
                     sqlock_error *err);

/* Undo one acquire of the lock's lease of that grant.  If it was the last, the
 * lease is released, or if a transaction guards it, when that ends. */
void lk_undo(sqlock_lock *lock, uint64_t grant);

#endif
