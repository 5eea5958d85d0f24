/*
 * skew.h - detect rows written by a clock that is not in step with the
 * database's: on a machine whose clock is wrong, or by a JVM in another zone
 */
#ifndef LK_SKEW_H
#define LK_SKEW_H

#include "lease/store.h"

/* Return by how many us, at least, the clock that wrote a row is ahead of the
 * database's, unless its TTL is longer than peer_ttl_ms: the most that any look
 * at this holder has told.  0: unknown, within the margin, or the lease is
 * over.  `cells` are those of an info row (db/dialect.h). */
int64_t lk_skew_us(struct lk_store *store, const sqlock_value *cells);

/* Look at the row of a lock of the store's region, and report the events
 * CLOCK_AHEAD and CLOCK_BEHIND, each once a minute unless it gets worse.  A
 * clock that is behind shows only where the row was looked at before the holder
 * wrote it.  The caller holds no mutex. */
void lk_skew_tell(struct lk_store *store, const sqlock_value *cells);

#endif
