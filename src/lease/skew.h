/*
 * skew.h - detect rows written by a clock that is ahead of the database's: on a
 * machine whose clock is wrong, or by a JVM in another time zone
 */
#ifndef LK_SKEW_H
#define LK_SKEW_H

#include "lease/store.h"

/* Return by how many us, at least, the clock that wrote the row is ahead of the
 * database's; 0: unknown, within the margin, or the lease is over. */
int64_t lk_skew_us(const struct lk_store *store, const sqlock_value *cells);

/* Report such a row as an event, at most once a minute.  Call it without a
 * mutex. */
void lk_skew_tell(struct lk_store *store, const sqlock_value *cells);

#endif
