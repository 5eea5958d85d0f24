/*
 * acquire.h - taking a lock and giving it back, with what the registry's
 * threads do for it meanwhile
 */
#ifndef LK_ACQUIRE_H
#define LK_ACQUIRE_H

#include "locks/registry.h"
#include "wait/acquisition.h"

/* An acquisition of that lock goes on, as lk_acquisition_run(); what it is
 * granted is cared for. */
int lk_take(sqlock_lock *lock, struct lk_acquisition *a, sqlock_error *err);

/* Undo one acquire of that owner's; as sqlock_release(). */
int lk_give_back(sqlock_lock *lock, uint64_t owner, sqlock_error *err);

/* In two steps: as lk_begin_release(); the rest after it gave more than 0. */
int lk_begin_give_back(sqlock_lock *lock, uint64_t owner,
                       struct lk_lease *lease, int *lost, sqlock_error *err);
int lk_end_give_back(sqlock_lock *lock, int begun, struct lk_lease *lease,
                     int lost, sqlock_error *err);

#endif
