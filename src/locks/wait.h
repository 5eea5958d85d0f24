/*
 * wait.h - waiting for another process's row to be free
 */
#ifndef LK_WAIT_H
#define LK_WAIT_H

#include "locks/lease.h"

/* Until the row may be claimed.  0: it looks free; EBUSY, ETIMEDOUT, ECANCELED,
 * or as lk_lease_read(); LK_PARKED: to be called again when it is woken, at its
 * deadline at the latest. */
int lk_wait_for_row(sqlock_lock *lock, struct lk_waiter *self,
                    sqlock_error *err);

/* The same until all may be claimed; may_take says which, also after EBUSY and
 * ETIMEDOUT. */
int lk_wait_for_rows(sqlock_lock *const *locks, size_t count,
                     struct lk_waiter *self, bool *may_take, sqlock_error *err);

#endif
