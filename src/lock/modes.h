/*
 * modes.h - how the locks of a call are wanted, and in which mode each
 */
#ifndef LK_MODES_H
#define LK_MODES_H

#include "lock/set.h"

/* Return the mode of the lock at that place in the array of the application. */
sqlock_mode lk_mode_of(const sqlock_acquire_options *options, size_t place);

/* Check wait_ms and the options (NULL: the defaults), and whether the locks can
 * be shared so; copy the options with defaults filled in.  Return 0, EINVAL or
 * ENOTSUP. */
int lk_modes_read(const struct lk_set *set, int64_t wait_ms,
                  const sqlock_acquire_options *options,
                  sqlock_acquire_options *complete, sqlock_error *err);

/* Return whether an acquisition of the set, which shares its lock, may join a
 * share of this process: it is a reader's, of one lock.  Where circles are
 * looked for through other processes it may not, since the CLIENT_ID of a share
 * names one owner only. */
bool lk_may_join(const struct lk_set *set,
                 const sqlock_acquire_options *options);

#endif
