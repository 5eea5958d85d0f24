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

#include "base/error.h"
#include "lock/call.h"
#include "lock/part.h"
#include "lock/release.h"

int lk_guarded_store(const sqlock_lock *lock, struct lk_store **out,
                     sqlock_error *err)
{
    int rc = lk_lock_ours(lock, err);

    *out = rc < 0 ? NULL : &lock->registry->store;
    return rc;
}

int lk_guard_begin(sqlock_lock *lock, const struct lk_store *store,
                   struct lk_lease *lease, sqlock_error *err)
{
    struct lk_hold *hold;
    int rc;

    if (lock == NULL)
        return lk_error(err, SQLOCK_EINVAL,
                        "lock must not be NULL: what is held no more guards "
                        "nothing");
    if (&lock->registry->store != store)
        return lk_error(
            err, SQLOCK_EINVAL,
            "the lock belongs to another registry than the transaction");
    rc = lk_lock_check(lock, err);
    if (rc < 0)
        return rc;
    pthread_mutex_lock(&lk_mutex);
    (void)lk_call_await_downgrade(lock->slot, lk_caller(lock));
    hold = lk_hold_of(lock->slot, lk_caller(lock));
    /* Whether its time is over is the database's to say. */
    rc = hold != NULL && hold->lost == 0
             ? 0
             : lk_hold_usable(lock->slot, lk_caller(lock), true, &hold, err);
    if (rc < 0) {
        hold = NULL;
    } else if (lk_is_share(hold)) {
        rc = lk_error(err, SQLOCK_ENOTSUP,
                      "the lock is shared: only a lease that has it alone can "
                      "be guarded");
    } else if (lk_lease_may_be_shared(&hold->lease)) {
        rc = lk_call_unclear(err);
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

/* Return the hold of the lease with that CLIENT_ID, which is guarded: so it is
 * neither released nor set aside, but its owner may have abandoned it.  The
 * caller holds the mutex. */
static struct lk_hold *guarded_hold(const sqlock_lock *lock,
                                    const char *client_id)
{
    struct lk_hold *hold;

    DL_FOREACH(lock->slot->holds, hold)
    {
        if (hold->guards > 0 && strcmp(hold->lease.client_id, client_id) == 0)
            return hold;
    }
    return NULL;
}

void lk_guard_end(sqlock_lock *lock, const char *client_id, int lost)
{
    sqlock_registry *registry = lock->registry;
    struct lk_hold *hold;
    uint64_t owed = 0; /* the grant that is to be released; 0: none */

    pthread_mutex_lock(&lk_mutex);
    hold = guarded_hold(lock, client_id);
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
