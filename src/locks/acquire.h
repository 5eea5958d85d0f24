/*
 * acquire.h - taking locks and giving them back, with what the registry's
 * threads do for them meanwhile
 */
#ifndef LK_ACQUIRE_H
#define LK_ACQUIRE_H

#include "locks/set.h"
#include "wait/acquisition.h"
#include "wait/release.h"

/* An acquisition of the set goes on, as lk_acquisition_run(); what it is
 * granted is cared for. */
int lk_take(struct lk_set *set, struct lk_acquisition *a, sqlock_error *err);

/* Undo one acquire of that owner's, of a member.  That needs no database until
 * lk_end_give_back(), which ends all that have begun: as
 * sqlock_release_many(). */
void lk_begin_give_back(struct lk_set *set, struct lk_release *release,
                        size_t i, uint64_t owner, sqlock_error *err);
int lk_end_give_back(struct lk_set *set, struct lk_release *release,
                     sqlock_error *err);

/* Both, of one lock: as sqlock_release(). */
int lk_give_back(sqlock_lock *lock, uint64_t owner, sqlock_error *err);

#endif
