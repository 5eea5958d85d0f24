/*
 * care.h - what the registry's threads do for a held lock: renew it, and report
 * when its lease is over
 */
#ifndef LK_CARE_H
#define LK_CARE_H

#include "locks/registry.h"

/* Begin to renew and watch the lease of that grant, as its acquisition
 * requested.  0, ERESOURCE. */
int lk_begin_care(sqlock_lock *lock, uint64_t grant,
                  const sqlock_acquire_options *options, sqlock_error *err);

/* Stop renewing and watching the lease of that grant (0: any).  This waits for
 * a running callback; a renewal under way may still finish. */
void lk_end_care(sqlock_lock *lock, uint64_t grant);

/* Report events of a lock (sqlock_options.on_event).  Called without a
 * mutex. */
void lk_tell_acquired(sqlock_lock *lock, uint64_t grant);
void lk_tell_released(sqlock_lock *lock, int64_t token, int lost, int rc);
void lk_tell_lost(sqlock_lock *lock, int64_t token, int code);

#endif
