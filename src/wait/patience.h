/*
 * patience.h - which failures of the database a wait survives, and how long it
 * pauses between attempts
 */
#ifndef LK_PATIENCE_H
#define LK_PATIENCE_H

#include "base/retry.h"
#include "lease/lease.h"
#include "wait/entry.h"

/* Return when the next attempt is due after one that gave rc, CLOCK_MONOTONIC,
 * at most the deadline; 0: end the wait with rc. */
int64_t lk_patience_pause(struct lk_retry *retry, struct lk_part *part, int rc);

/* Note that the database has answered: an outage is over. */
void lk_patience_end(struct lk_retry *retry, struct lk_part *part);

/* Return the result of a wait whose last attempt gave rc.  A claim in doubt is
 * EUNCERTAIN; a conflict until the end is EBUSY or ETIMEDOUT. */
int lk_patience_result(const struct lk_part *part, int rc, sqlock_error *err);

#endif
