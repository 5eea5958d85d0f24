/*
 * care.c - begin and end the renewals and the watch of a held lock (care.h)
 */
#include "lock/care.h"

#include "base/error.h"
#include "lock/registry.h"

/* Return the hold of that grant; NULL: it is over.  The caller holds the
 * mutex. */
static struct lk_hold *held(const sqlock_lock *lock, uint64_t grant)
{
    struct lk_hold *hold = lk_hold_by_grant(lock->slot, grant);

    return hold != NULL && hold->state == LK_HOLD_HELD ? hold : NULL;
}

/* Begin to watch, and with `renews` to renew, the lease of that grant, unless
 * it is over. */
static int begin(sqlock_lock *lock, uint64_t grant, bool renews,
                 sqlock_error *err)
{
    sqlock_registry *registry = lock->registry;
    struct lk_hold *hold;
    int rc = lk_handler_start(&registry->expiry.handler, err);

    if (rc == 0 && renews)
        rc = lk_handler_start(&registry->renewer.handler, err);
    if (rc < 0)
        return rc;
    pthread_mutex_lock(&lk_mutex);
    hold = held(lock, grant);
    if (hold != NULL) {
        lk_expiry_add(&registry->expiry, hold);
        if (renews)
            lk_renewer_add(&registry->renewer, hold);
    }
    pthread_mutex_unlock(&lk_mutex);
    lk_handler_wake(&registry->expiry.handler);
    if (renews)
        lk_handler_wake(&registry->renewer.handler);
    return 0;
}

int lk_care_begin(sqlock_lock *lock, uint64_t grant, sqlock_error *err)
{
    const struct lk_hold *hold;
    bool is_watched = false;
    bool is_renewed = false;
    int64_t token = 0;

    pthread_mutex_lock(&lk_mutex);
    hold = held(lock, grant);
    if (hold != NULL) {
        token = hold->lease.answered.token;
        is_renewed = hold->asked.auto_renew;
        is_watched = is_renewed || hold->is_to_be_told;
    }
    pthread_mutex_unlock(&lk_mutex);
    if (hold == NULL) /* over, and the lock may have another holder */
        return 0;
    lk_tell(lock, SQLOCK_EVENT_ACQUIRED, token, 0);
    return is_watched ? begin(lock, grant, is_renewed, err) : 0;
}

void lk_care_stop(struct lk_hold *hold)
{
    sqlock_registry *registry = hold->slot->registry;

    lk_renewer_remove(&registry->renewer, hold);
    lk_expiry_remove(&registry->expiry, hold);
}

int lk_care_check(const struct lk_hold *hold, sqlock_error *err)
{
    return lk_expiry_is_circle(&hold->slot->registry->expiry, hold->lock)
               ? lk_error(err, SQLOCK_EINUSE,
                          "on_lost of this lock waits until the callback that "
                          "runs in this thread has returned: release the lock "
                          "after that")
               : 0;
}

void lk_care_end(struct lk_hold *hold)
{
    lk_care_stop(hold);
    lk_expiry_await_callback(&hold->slot->registry->expiry, hold->lock);
}
