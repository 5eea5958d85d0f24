/*
 * acquire.h - acquire locks, and have the registry's threads renew and watch
 * their leases
 */
#ifndef LK_ACQUIRE_H
#define LK_ACQUIRE_H

#include "lock/acquisition.h"
#include "lock/set.h"

/* Run an acquisition of the set by lk_acquisition_run(), or, unless may_block,
 * by lk_acquisition_go_on(), and begin to renew and watch the granted locks; if
 * that fails, release them.  Each member's rc is its own result.  Return
 * LK_SUSPENDED: call this again when the request is woken; LK_BLOCKED: call it
 * with may_block; or a result of sqlock_acquire_many(). */
int lk_take(struct lk_set *set, struct lk_acquisition *a, bool may_block,
            sqlock_error *err);

#endif
