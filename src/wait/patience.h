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

/* An attempt gave rc: the next one is due at self->paused_until_ns, no later
 * than the deadline.  False: rc is the result of the wait. */
bool lk_patience_pause(struct lk_patience *patience, struct lk_entry *entry,
                       struct lk_waiter *self, int rc);

/* Until the pause is over: 0, ECANCELED; LK_SUSPENDED, at once, to who is woken
 * by a call. */
int lk_patience_await(struct lk_waiter *self, sqlock_error *err);

/* The database has answered. */
void lk_patience_end(struct lk_patience *patience, struct lk_entry *entry);

/* What the wait ends with, its last attempt having given rc: a claim in doubt
 * is told as such, and a conflict that went on until the end is a lock that was
 * not to be had. */
int lk_patience_result(const struct lk_waiter *self,
                       const struct lk_lease *lease, int rc, sqlock_error *err);

#endif
