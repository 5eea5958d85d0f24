/*
 * guarded.c - mark the leases that open transactions guard
 *
 * A guard has the rows of its leases locked, so the renewer leaves these leases
 * out: a renewal would only wait.
 */
#include "lock/guarded.h"

#include <assert.h>
#include <string.h>
#include <utlist.h>

#include "base/clock.h"
#include "base/error.h"
#include "lock/release.h"

/* Pause while renewals of a lease end that were sent before its guard. */
#define PAUSE_NS (2 * LK_NS_PER_MS)

int lk_guarded_store(const sqlock_lock *lock, struct lk_store **out,
                     sqlock_error *err)
{
    int rc = lk_lock_ours(lock, err);

    *out = rc < 0 ? NULL : &lock->registry->store;
    return rc;
}

static int over(int lost, sqlock_error *err)
{
    return lk_error(err, lost, "the lease of this lock is over");
}

int lk_guard_begin(sqlock_lock *lock, const struct lk_store *store,
                   struct lk_lease *lease, sqlock_error *err)
{
    const struct lk_hold *aside;
    struct lk_hold *hold;
    int rc;

    if (lock == NULL)
        return lk_error_null(err, "lock");
    if (&lock->registry->store != store)
        return lk_error(
            err, SQLOCK_EINVAL,
            "the lock belongs to another registry than the transaction");
    rc = lk_lock_check(lock, err);
    if (rc < 0)
        return rc;
    pthread_mutex_lock(&lk_mutex);
    hold = lk_hold_of(lock->slot, lk_caller(lock));
    aside = lk_aside_of(lock->slot, lk_caller(lock));
    if (hold == NULL) {
        rc = aside != NULL ? over(aside->lost, err) : lk_not_owner(err);
    } else if (hold->lost != 0) {
        rc = over(hold->lost, err);
    } else if (lk_is_share(hold)) {
        rc = lk_error(err, SQLOCK_ENOTSUP,
                      "the lock is shared: only a lease that has it alone can "
                      "be guarded");
    } else {
        *lease = hold->lease;
        hold->guards++;
        /* Keep the lock as long as it is guarded, even if its last reference is
         * dropped. */
        lock->pins++;
    }
    pthread_mutex_unlock(&lk_mutex);
    return rc;
}

int lk_guard_begin_alone(sqlock_lock *lock, const struct lk_store *store,
                         struct lk_lease *lease, sqlock_error *err)
{
    int rc = lk_guard_begin(lock, store, lease, err);

    if (rc < 0 || !lk_lease_may_be_shared(lease))
        return rc;
    lk_guard_end(lock, lease->client_id, 0);
    return lk_error(err, SQLOCK_ENOTSUP,
                    "a downgrade got no answer, so the lock may be shared: "
                    "renew the lease when statement_timeout_ms is over, which "
                    "finds out");
}

struct lk_hold *lk_guarded_hold(const sqlock_lock *lock, const char *client_id)
{
    struct lk_hold *hold;

    DL_FOREACH(lock->slot->holds, hold)
    {
        if (hold->guards > 0 && strcmp(hold->lease.client_id, client_id) == 0)
            return hold;
    }
    return NULL;
}

int lk_guard_settle(const sqlock_lock *lock, struct lk_lease *lease,
                    sqlock_error *err)
{
    for (;;) {
        const struct lk_hold *hold;
        bool is_guarded;
        bool is_renewed;

        pthread_mutex_lock(&lk_mutex);
        hold = lk_guarded_hold(lock, lease->client_id);
        is_guarded = hold->guards > 1;
        is_renewed = hold->renewals != NULL;
        *lease = hold->lease;
        pthread_mutex_unlock(&lk_mutex);
        if (is_guarded)
            return lk_error(err, SQLOCK_EINUSE,
                            "an open transaction guards this lock: end it "
                            "first");
        if (!is_renewed)
            return 0;
        lk_sleep_until(sqlock_monotonic_ns() + PAUSE_NS);
    }
}

/* Return how the guarded lease has ended; 0: it has not. */
static int loss_of(const sqlock_lock *lock, const char *client_id)
{
    const struct lk_hold *hold;
    int lost;

    pthread_mutex_lock(&lk_mutex);
    hold = lk_guarded_hold(lock, client_id);
    lost = hold->lost;
    if (lost == 0 && lk_remaining_ns(hold) == 0)
        lost = SQLOCK_EEXPIRED;
    pthread_mutex_unlock(&lk_mutex);
    return lost;
}

int lk_guard_end_statement(sqlock_lock *lock, const char *client_id, int rc,
                           sqlock_error *err)
{
    int lost = rc == SQLOCK_ELOST || rc == SQLOCK_EEXPIRED ? rc : 0;

    if (rc == 0)
        lost = loss_of(lock, client_id);
    lk_guard_end(lock, client_id, lost);
    return rc == 0 && lost != 0 ? over(lost, err) : rc;
}

void lk_guard_end(sqlock_lock *lock, const char *client_id, int lost)
{
    sqlock_registry *registry = lock->registry;
    struct lk_hold *hold;
    uint64_t owed = 0; /* the grant that is to be released; 0: none */

    pthread_mutex_lock(&lk_mutex);
    hold = lk_guarded_hold(lock, client_id);
    assert(hold != NULL);
    hold->guards--;
    if (lost != 0 && hold->lost == 0)
        (void)lk_lose(hold, lost);
    lk_wake_in_time(hold->slot);
    if (hold->guards == 0 && hold->count == 0)
        owed = hold->grant;
    pthread_mutex_unlock(&lk_mutex);
    /* the lease may be due for renewal by now */
    lk_handler_wake(&registry->renewer.handler);
    if (lost != 0)
        lk_handler_wake(&registry->expiry.handler);
    if (owed != 0)
        lk_undo(lock, owed);
    pthread_mutex_lock(&lk_mutex);
    lk_lock_unpin(lock);
    pthread_mutex_unlock(&lk_mutex);
}
