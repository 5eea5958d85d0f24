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

/* Report an event of a lock (sqlock_options.on_event): acquired, lost or
 * released.  Called without a mutex. */
void lk_tell(sqlock_lock *lock, sqlock_event_kind kind, int64_t token,
             int code);

#endif
