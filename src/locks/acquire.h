/*
 * acquire.h - acquire and release locks, and have the registry's threads renew
 * and watch them meanwhile
 */
#ifndef LK_ACQUIRE_H
#define LK_ACQUIRE_H

#include "locks/set.h"
#include "wait/acquisition.h"
#include "wait/release.h"

/* Run an acquisition of the set by lk_acquisition_run(), and begin to renew and
 * watch the granted locks; if that fails, release them.  Each member's rc is
 * its own result.  Return LK_SUSPENDED: call this again when the request is
 * woken; or a result of sqlock_acquire_many(). */
int lk_take(struct lk_set *set, struct lk_acquisition *a, sqlock_error *err);

/* Undo one acquire of member i for that owner, as far as possible without the
 * database.  The member's rc is the result, as of lk_begin_release(). */
void lk_begin_give_back(struct lk_set *set, struct lk_release *release,
                        size_t i, uint64_t owner, sqlock_error *err);

/* Hand off, or release in the database, the leases whose last acquire was
 * undone, and free the release.  Each member's rc is its own result.  Return
 * the result of a set of one lock, and 0 for several. */
int lk_end_give_back(struct lk_set *set, struct lk_release *release,
                     sqlock_error *err);

/* Undo one acquire of one lock for that owner (0: lk_caller()), and release the
 * lease if it was the last.  Results as sqlock_release(). */
int lk_give_back(sqlock_lock *lock, uint64_t owner, sqlock_error *err);

#endif
