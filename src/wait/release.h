/*
 * release.h - the end of a lease: to the next waiter of this process, or to the
 * database
 */
#ifndef LK_RELEASE_H
#define LK_RELEASE_H

#include "wait/entry.h"

/* After lk_begin_release() gave 1; the lock goes on whatever the result.  As
 * sqlock_release(). */
int lk_end_lease(struct lk_entry *entry, struct lk_lease *lease, int lost,
                 sqlock_error *err);

/* After LK_RELEASE_OVERDUE. */
int lk_end_overdue(struct lk_entry *entry, struct lk_lease *lease, int lost,
                   sqlock_error *err);

#endif
