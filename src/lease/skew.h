/*
 * skew.h - rows that a clock in step with the database's cannot have written:
 * of a machine whose clock is off, of a JVM in another time zone
 */
#ifndef LK_SKEW_H
#define LK_SKEW_H

#include "lease/store.h"

/* Return how far, at least, the clock that wrote the row is ahead of the
 * database's, in us; 0: not known, within the margin, or the lease is over. */
int64_t lk_skew_us(const struct lk_store *store, const sqlock_value *cells);

/* Tell the log of such a row, once a minute at most.  No mutex is to be
 * held. */
void lk_skew_tell(struct lk_store *store, const sqlock_value *cells);

#endif
