/*
 * acquire.h - taking locks and giving them back, with what the registry's
 * threads do for them meanwhile
 */
#ifndef LK_ACQUIRE_H
#define LK_ACQUIRE_H

#include "locks/set.h"
#include "wait/acquisition.h"
#include "wait/release.h"

/* Run an acquisition of the set, as lk_acquisition_run(), and begin to renew
 * and watch what it was granted.  */
int lk_take(struct lk_set *set, struct lk_acquisition *a, sqlock_error *err);

/* Undo one acquire of that owner's, of one member, as far as no database is
 * needed; and end all that have begun, with the results of
 * sqlock_release_many(). */
void lk_begin_give_back(struct lk_set *set, struct lk_release *release,
                        size_t i, uint64_t owner, sqlock_error *err);
int lk_end_give_back(struct lk_set *set, struct lk_release *release,
                     sqlock_error *err);

/* Do both for one lock, with the results of sqlock_release(). */
int lk_give_back(sqlock_lock *lock, uint64_t owner, sqlock_error *err);

#endif
