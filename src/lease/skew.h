/*
 * skew.h - rows that a clock in step with the database's cannot have written:
 * of a machine whose clock is off, of a JVM in another time zone
 */
#ifndef LK_SKEW_H
#define LK_SKEW_H

#include "lease/store.h"

/* How far ahead the clock is, at least, that wrote the info row of a lease that
 * is not over, in us; 0: nothing is known against it.  More than the margin:
 * that much is allowed for. */
int64_t lk_skew_us(const struct lk_store *store, const sqlock_value *cells);

/* Tell the log of such a row, once a minute at most.  No mutex is to be
 * held. */
void lk_skew_tell(struct lk_store *store, const sqlock_value *cells);

#endif
