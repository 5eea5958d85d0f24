/*
 * skew.h - detect rows written by a clock that is ahead of the database's: on a
 * machine whose clock is wrong, or by a JVM in another time zone
 */
#ifndef LK_SKEW_H
#define LK_SKEW_H

#include "lease/store.h"

/* Return by how many us, at least, the clock that wrote a row is ahead of the
 * database's; 0: unknown, within the margin, or the lease is over.  `cells` are
 * those of an info row (db/dialect.h). */
int64_t lk_skew_us(const struct lk_store *store, const sqlock_value *cells);

/* If the clock that wrote a row is ahead, report the event CLOCK_AHEAD, at most
 * once a minute.  The caller holds no mutex. */
void lk_skew_tell(struct lk_store *store, const sqlock_value *cells);

#endif
