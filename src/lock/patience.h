/*
 * patience.h - which failures of the database a wait survives, and how long it
 * pauses between attempts
 */
#ifndef LK_PATIENCE_H
#define LK_PATIENCE_H

#include "base/retry.h"
#include "lease/lease.h"
#include "lock/slot.h"

/* Decide whether the wait goes on after an attempt that gave rc.  Return when
 * the next attempt is due, CLOCK_MONOTONIC, at most the deadline; 0: end the
 * wait. */
int64_t lk_patience_pause(struct lk_retry *retry, struct lk_part *part, int rc,
                          const sqlock_error *err);

/* Note that the database has answered, which ends an outage. */
void lk_patience_end(struct lk_retry *retry, struct lk_part *part);

/* Return the result of a wait whose last attempt gave rc: EUNCERTAIN if the
 * claim is in doubt, EBUSY or ETIMEDOUT for conflicts until the deadline,
 * otherwise rc. */
int lk_patience_result(const struct lk_part *part, int rc, sqlock_error *err);

#endif
