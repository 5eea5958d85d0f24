/*
 * patience.c - a wait goes on while the database is away.  An outage, a server
 * that is full, or one that is a standby, is waited for like a holder: until
 * the caller's time is over, with pauses that grow.  What stays wrong until
 * somebody puts it right ends the wait at once.
 */
#include "wait/patience.h"

#include "base/clock.h"
#include "base/error.h"
#include "wait/entry.h"

/* A row, a file or a table that others fight for.  EBUSY is not the lock's, and
 * ETIMEDOUT is a claim that outlived its lease. */
#define OF_OTHERS (LK_RETRY_CONFLICT | LK_RETRY_BUSY)

static const struct lk_retry_policy policy = {
    .first_us = 50000,
    .longest_us = 1000000,
    .classes = OF_OTHERS | LK_RETRY_UNREACHABLE | LK_RETRY_UNCERTAIN |
               LK_RETRY_FULL | LK_RETRY_STANDBY,
    .last = LK_RETRY_AT_DEADLINE,
};

bool lk_patience_pause(struct lk_patience *patience, struct lk_entry *entry,
                       struct lk_waiter *self, int rc)
{
    struct lk_retry *retry = &patience->retry;

    if (self->wait_ms == 0 || self->options->fail_fast)
        return false;
    if (retry->failures == 0) {
        lk_retry_begin(retry, &policy, self->deadline_ns);
        /* A file that cannot be written is promoted by nobody. */
        if (entry->store->db.driver->capabilities & SQLOCK_CAP_ONE_WRITER)
            retry->policy.classes &= ~(unsigned)LK_RETRY_STANDBY;
    }
    if (!lk_retry_decide(retry, rc))
        return false;
    self->paused_until_ns = retry->resume_ns;
    lk_note_outage(entry, lk_retry_admits(OF_OTHERS, rc) ? 0 : rc);
    return true;
}

int lk_patience_await(struct lk_waiter *self, sqlock_error *err)
{
    int rc = 0;

    if (self->paused_until_ns == 0)
        return 0;
    if (self->on_wake == NULL)
        rc = lk_waiter_sleep(self, self->paused_until_ns, err);
    else if (lk_waiter_is_cancelled(self))
        rc = lk_canceled(err);
    else if (sqlock_monotonic_ns() < self->paused_until_ns)
        return LK_SUSPENDED;
    self->paused_until_ns = 0;
    return rc;
}

void lk_patience_end(struct lk_patience *patience, struct lk_entry *entry)
{
    if (patience->retry.failures == 0)
        return;
    lk_retry_reset(&patience->retry);
    lk_note_outage(entry, 0);
}

int lk_patience_result(const struct lk_waiter *self,
                       const struct lk_lease *lease, int rc, sqlock_error *err)
{
    if (rc == SQLOCK_ERETRY || (rc == SQLOCK_EBUSY && self->wait_ms != 0))
        return lk_error(err,
                        self->wait_ms == 0 ? SQLOCK_EBUSY : SQLOCK_ETIMEDOUT,
                        "the claim met other transactions until its time was "
                        "over");
    if (!lease->is_in_doubt || rc == SQLOCK_EUNCERTAIN ||
        rc == SQLOCK_ECANCELED)
        return rc;
    return lk_error(err, SQLOCK_EUNCERTAIN,
                    "the connection broke under a claim, and the database did "
                    "not say before the end of the wait what became of it");
}
