/*
 * patience.c - keep waiting while the database is away
 *
 * A wait continues through an outage, on a full server and on a standby, with
 * growing pauses, until its deadline.  A failure that somebody must repair ends
 * the wait at once, as does a limit of this process.
 */
#include "lock/patience.h"

#include "base/error.h"

/* Conflicts with other transactions over a row, file or table.  EBUSY means
 * such a conflict here, not that the lock is held; and ETIMEDOUT, that the
 * claim took longer than the lease that it got, or than a statement may. */
#define OF_OTHERS (LK_RETRY_CONFLICT | LK_RETRY_BUSY)

/* The longest pause after a conflict while the wait has no ticket: whoever
 * comes meanwhile would get one before it. */
#define WITHOUT_TICKET_US 20000

static const struct lk_retry_policy policy = {
    .first_us = 50000,
    .longest_us = 1000000,
    .classes = OF_OTHERS | LK_RETRY_UNREACHABLE | LK_RETRY_UNCERTAIN |
               LK_RETRY_FULL | LK_RETRY_STANDBY,
    .last = LK_RETRY_AT_DEADLINE,
};

/* Return whether the attempt met others, and the wait is to have a ticket, and
 * has none yet.  One that timed out is not repeated soon: the database may have
 * too much to do. */
static bool is_passed(const struct lk_slot *slot, int rc)
{
    return (rc == SQLOCK_ERETRY || rc == SQLOCK_EBUSY) &&
           lk_store_has_tickets(slot->store) &&
           (slot->ticket[0] == '\0' || slot->place < 0);
}

int64_t lk_patience_pause(struct lk_retry *retry, struct lk_part *part, int rc,
                          const sqlock_error *err)
{
    const struct lk_waiter *self = part->waiter;
    struct lk_slot *slot = part->slot;

    if (self->wait_ms == 0 || self->options->fail_fast ||
        lk_error_is_limit(err))
        return 0;
    if (retry->failures == 0) {
        lk_retry_begin(retry, &policy, self->deadline_ns);
        /* A read-only file does not become writable by a promotion. */
        if (slot->store->db.driver->has_one_writer)
            retry->policy.classes &= ~(unsigned)LK_RETRY_STANDBY;
    }
    retry->policy.longest_us =
        is_passed(slot, rc) ? WITHOUT_TICKET_US : policy.longest_us;
    if (!lk_retry_decide(retry, rc))
        return 0;
    lk_note_outage(slot, lk_retry_admits(OF_OTHERS, rc) ? 0 : rc);
    return retry->resume_ns;
}

void lk_patience_end(struct lk_retry *retry, struct lk_part *part)
{
    if (retry->failures == 0)
        return;
    lk_retry_reset(retry);
    lk_note_outage(part->slot, 0);
}

int lk_patience_result(const struct lk_part *part, int rc, sqlock_error *err)
{
    int64_t wait_ms = part->waiter->wait_ms;

    if (rc == SQLOCK_ERETRY || (rc == SQLOCK_EBUSY && wait_ms != 0))
        return lk_error(
            err, wait_ms == 0 ? SQLOCK_EBUSY : SQLOCK_ETIMEDOUT,
            "the claim conflicted with other transactions until its deadline");
    if (part->lease.believed.fate != LK_CLAIM_IN_DOUBT ||
        rc == SQLOCK_EUNCERTAIN || rc == SQLOCK_ECANCELED)
        return rc;
    return lk_error(
        err, SQLOCK_EUNCERTAIN,
        "a claim timed out, or its connection was lost, and the database did "
        "not confirm before the end of the wait whether the lock was granted");
}
