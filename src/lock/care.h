/*
 * care.h - have the registry's threads renew the lease of a held lock, and
 * report when the lease is over
 */
#ifndef LK_CARE_H
#define LK_CARE_H

#include "lock/registry.h"

/* Begin to renew and watch the lease of that grant, as far as the options of
 * its acquisition ask for it, and report the acquisition.  If the lock is not
 * held by that grant any more, nothing is done.  Return 0 or ERESOURCE. */
int lk_begin_care(sqlock_lock *lock, uint64_t grant,
                  const sqlock_acquire_options *options, sqlock_error *err);

/* Stop renewing and watching the lease of that grant and of earlier grants (0:
 * of any).  This waits for a running on_lost; a renewal under way may still
 * finish. */
void lk_end_care(sqlock_lock *lock, uint64_t grant);

/* Report that a lock was acquired, lost or released, by calling on_event of the
 * registry's options.  `token` is that of the lease; `code` is the reason of a
 * loss or the result of a release, or 0.  The caller holds no mutex. */
void lk_tell(sqlock_lock *lock, sqlock_event_kind kind, int64_t token,
             int code);

#endif
