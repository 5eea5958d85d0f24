/*
 * modes.h - in which mode each lock of a call is wanted
 */
#ifndef LK_MODES_H
#define LK_MODES_H

#include "lock/set.h"

/* Return the mode of the lock at that place in the array of the application. */
sqlock_mode lk_mode_of(const sqlock_acquire_options *options, size_t place);

/* Check the modes, and whether the locks can be shared so; set the weight that
 * 0 stands for.  Return 0, EINVAL or ENOTSUP. */
int lk_modes_check(const struct lk_set *set, sqlock_acquire_options *options,
                   sqlock_error *err);

#endif
