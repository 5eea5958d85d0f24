/*
 * care.h - have the registry's threads renew the lease of a held lock, and
 * report when the lease is over
 */
#ifndef LK_CARE_H
#define LK_CARE_H

#include "lock/hold.h"

/* Begin to renew and watch the lease of that grant, as far as the options of
 * its acquisition ask for it, and report the acquisition.  If the lock is not
 * held by that grant any more, nothing is done.  The caller does not hold the
 * mutex.  Return 0 or ERESOURCE. */
int lk_care_begin(struct sqlock_lock *lock, uint64_t grant, sqlock_error *err);

/* Return EINUSE where lk_care_end() would have to wait for an on_lost that
 * waits for the callback which this thread runs; otherwise 0.  The caller holds
 * the mutex. */
int lk_care_check(const struct lk_hold *hold, sqlock_error *err);

/* Stop renewing and watching the lease; a renewal under way may still finish.
 * lk_care_end() also waits for a running on_lost of its handle.  The caller
 * holds the mutex, which is released meanwhile. */
void lk_care_stop(struct lk_hold *hold);
void lk_care_end(struct lk_hold *hold);

#endif
