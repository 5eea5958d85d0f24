/*
 * share.c - the calls of sqlock/shared.h: make a lease a share, and change a
 * lock's permits
 */
#include "sqlock/shared.h"

#include "base/error.h"
#include "lease/bell.h"
#include "lease/share.h"
#include "lock/guarded.h"
#include "lock/hold.h"

/* Return the caller's hold.  The caller holds the mutex. */
static struct lk_hold *own(const sqlock_lock *lock)
{
    return lk_hold_of(lock->slot, lk_caller(lock));
}

static bool is_shared_already(const sqlock_lock *lock)
{
    const struct lk_hold *hold;
    bool is_share;

    pthread_mutex_lock(&lk_mutex);
    hold = own(lock);
    is_share = hold != NULL && lk_is_share(hold);
    pthread_mutex_unlock(&lk_mutex);
    return is_share;
}

/* Note what became of the lease.  Where it is a share now, others of this
 * process may ask for theirs. */
static void note(const sqlock_lock *lock, const struct lk_lease *lease)
{
    struct lk_hold *hold;

    pthread_mutex_lock(&lk_mutex);
    hold = lk_guarded_hold(lock, lease->client_id);
    hold->lease = *lease;
    if (lk_is_share(hold))
        lk_pass_turn(lock->slot);
    pthread_mutex_unlock(&lk_mutex);
}

static int downgrade(const sqlock_lock *lock, struct lk_lease *lease,
                     sqlock_error *err)
{
    struct lk_store *store = &lock->registry->store;
    int rc = lk_guard_settle(lock, lease, err);

    if (rc == 0)
        rc = lk_share_downgrade(store, lease, err);
    if (rc == SQLOCK_EUNCERTAIN)
        note(lock, lease);
    if (rc < 0)
        return rc;
    (void)lk_place_end(store, &lease->place, false, false);
    note(lock, lease);
    return 0;
}

int sqlock_downgrade(sqlock_lock *lock, sqlock_error *err)
{
    struct lk_store *store;
    struct lk_lease lease;
    sqlock_error why = {0};
    int rc = lk_guarded_store(lock, &store, err);

    if (rc == 0)
        rc = lk_share_check(store, 1, LK_NO_LIMIT, err);
    if (rc < 0)
        return rc;
    if (is_shared_already(lock)) /* perhaps one that is over by now */
        return sqlock_renew(lock, 0, err);
    /* As a guard does, this keeps the lease from being renewed, released or set
     * aside meanwhile. */
    rc = lk_guard_begin(lock, store, &lease, err);
    if (rc < 0)
        return rc;
    rc = downgrade(lock, &lease, &why);
    rc = lk_guard_end_statement(lock, lease.client_id, rc, &why);
    return lk_error_pass(err, &why, rc);
}

int sqlock_set_permits(sqlock_registry *registry, const char *name,
                       uint32_t permits, sqlock_error *err)
{
    char key[SQLOCK_KEY_SIZE] = "";
    struct lk_store *store;
    int rc = lk_store_key(registry, name, &store, key, err);

    return rc < 0 ? rc : lk_share_set_permits(store, key, permits, err);
}
