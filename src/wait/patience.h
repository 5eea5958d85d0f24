/*
 * patience.h - a wait goes on while the database is away: after which results,
 * and after which pause
 */
#ifndef LK_PATIENCE_H
#define LK_PATIENCE_H

#include "base/retry.h"
#include "lease/lease.h"
#include "wait/entry.h"

/* Of one acquisition that waits. */
struct lk_patience {
    struct lk_retry retry;
};

/* An attempt at that part gave rc: when the next one is due, CLOCK_MONOTONIC,
 * no later than the deadline; 0: rc is the result of the wait. */
int64_t lk_patience_pause(struct lk_patience *patience, struct lk_part *part,
                          int rc);

/* The database has answered. */
void lk_patience_end(struct lk_patience *patience, struct lk_part *part);

/* What the wait ends with, its last attempt having given rc: a claim in doubt
 * is told as such, and a conflict that went on until the end is a lock that was
 * not to be had. */
int lk_patience_result(const struct lk_part *part, int rc, sqlock_error *err);

#endif
