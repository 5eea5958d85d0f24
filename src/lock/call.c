/*
 * call.c - calls about a held lease that send a statement of their own (call.h)
 */
#include "lock/call.h"

#include "base/error.h"
#include "base/thread.h"
#include "lock/part.h"
#include "lock/registry.h"

int lk_call_unclear(sqlock_error *err)
{
    return lk_error(err, SQLOCK_ENOTSUP,
                    "a downgrade got no answer, so the lock may be shared: "
                    "renew the lease when statement_timeout_ms is over, which "
                    "finds out");
}

/* --- waiting; the caller holds the mutex --- */

bool lk_call_await_downgrade(const struct lk_slot *slot, uint64_t owner)
{
    const struct lk_hold *hold = lk_hold_of(slot, owner);
    bool has_waited = false;

    while (hold != NULL && hold->is_downgrading) {
        lk_renewal_await_end();
        has_waited = true;
        hold = lk_hold_of(slot, owner);
    }
    return has_waited;
}

void lk_call_await(const struct lk_hold *hold)
{
    while (hold->calls > 0)
        lk_renewal_await_end();
}

/* --- beginning and ending --- */

/* Find the hold, and whether its lease can be published by, or downgraded.  The
 * caller holds the mutex. */
static int check(const sqlock_lock *lock, struct lk_hold **out,
                 bool is_downgrade, sqlock_error *err)
{
    int rc = lk_hold_usable(lock->slot, lk_caller(lock), false, out, err);
    const struct lk_hold *hold = *out;

    if (hold != NULL && lk_is_share(hold) && is_downgrade)
        return LK_CALL_SHARED;
    if (rc < 0)
        return rc;
    if (lk_is_share(hold))
        return lk_error(err, SQLOCK_EINVAL,
                        "who shares a lock leads nobody: take it with "
                        "SQLOCK_EXCLUSIVE to publish a text");
    return !is_downgrade && lk_lease_may_be_shared(&hold->lease)
               ? lk_call_unclear(err)
               : 0;
}

int lk_call_begin(sqlock_lock *lock, bool is_downgrade, struct lk_hold **out,
                  struct lk_lease *lease, sqlock_error *err)
{
    struct lk_hold *hold;
    int rc = lk_lock_check(lock, err);

    if (rc < 0)
        return rc;
    pthread_mutex_lock(&lk_mutex);
    (void)lk_call_await_downgrade(lock->slot, lk_caller(lock));
    rc = check(lock, &hold, is_downgrade, err);
    if (rc == 0) {
        hold->calls++;
        hold->pins++;
        lock->pins++;
        hold->is_downgrading = is_downgrade;
        hold->lease.believed.has_text =
            hold->lease.believed.has_text || !is_downgrade;
        while (is_downgrade && (hold->calls > 1 || lk_is_being_renewed(hold)))
            lk_renewal_await_end();
        *lease = hold->lease;
        *out = hold;
    }
    pthread_mutex_unlock(&lk_mutex);
    return rc;
}

int lk_call_end(sqlock_lock *lock, struct lk_hold *hold, int rc,
                sqlock_error *err)
{
    sqlock_registry *registry = lock->registry;
    int lost = rc == SQLOCK_ELOST || rc == SQLOCK_EEXPIRED ? rc : 0;

    pthread_mutex_lock(&lk_mutex);
    if (rc == 0)
        lost = hold->lost;
    if (rc == 0 && lost == 0 && lk_remaining_ns(hold) == 0)
        lost = SQLOCK_EEXPIRED;
    if (lost != 0 && hold->lost == 0)
        (void)lk_lose(hold, lost);
    hold->calls--;
    if (hold->calls == 0)
        hold->is_downgrading = false;
    lk_renewal_tell_end();
    lk_wake_in_time(hold->slot);
    lk_hold_unpin(hold);
    pthread_mutex_unlock(&lk_mutex);
    /* The lease may be due for renewal by now. */
    lk_handler_wake(&registry->renewer.handler);
    if (lost != 0)
        lk_handler_wake(&registry->expiry.handler);
    pthread_mutex_lock(&lk_mutex);
    lk_lock_unpin(lock);
    pthread_mutex_unlock(&lk_mutex);
    return rc == 0 && lost != 0 ? lk_hold_over(lost, err) : rc;
}
