/*
 * wait.h - waiting for another process's row to be free
 */
#ifndef LK_WAIT_H
#define LK_WAIT_H

#include "lease/lease.h"
#include "wait/entry.h"

/* A deadline of one statement from now, no later than one behind the wait's
 * end: so far may a call outstay it. */
int64_t lk_wait_statement_deadline(const struct lk_store *store,
                                   const struct lk_waiter *self);

/* Until the row may be claimed.  0: it looks free; EBUSY, ETIMEDOUT, ECANCELED,
 * or as lk_lease_read(); LK_SUSPENDED: to be called again when it is woken, at
 * its deadline at the latest. */
int lk_wait_for_row(struct lk_entry *entry, struct lk_waiter *self,
                    sqlock_error *err);

/* The same until all may be claimed; may_take says which, also after EBUSY and
 * ETIMEDOUT.  `seen`, one each and all zero at first, keeps what was seen. */
int lk_wait_for_rows(struct lk_entry *const *entries, size_t count,
                     struct lk_waiter *self, struct lk_observed *seen,
                     bool *may_take, sqlock_error *err);

#endif
