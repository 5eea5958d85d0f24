/*
 * guarded.c - leases under an open guard.  The guard has their rows locked, so
 * the renewer leaves them out: it would only wait for them.
 */
#include "locks/guarded.h"

#include <string.h>

#include "base/error.h"
#include "locks/entry.h"

int lk_guarded_store(const sqlock_lock *lock, struct lk_store **out,
                     sqlock_error *err)
{
    int rc = lk_lock_check(lock, err);

    *out = rc < 0 ? NULL : lock->store;
    return rc;
}

int lk_guard_begin(sqlock_lock *lock, const struct lk_store *store,
                   struct lk_lease *lease, sqlock_error *err)
{
    int rc;

    if (lock == NULL || lock->store != store)
        return lk_error(err, SQLOCK_EINVAL,
                        "the lock is not one of the transaction's registry");
    rc = lk_lock_check(lock, err);
    if (rc < 0)
        return rc;
    pthread_mutex_lock(&lock->mutex);
    if (!lk_is_mine(lock)) {
        rc = lk_not_owner(err);
    } else if (lock->lost != 0) {
        rc = lk_error(err, lock->lost, "the lease of this lock is over");
    } else {
        lk_copy_lease(lock, lease);
        lock->guards++;
    }
    pthread_mutex_unlock(&lock->mutex);
    return rc;
}

void lk_guard_end(sqlock_lock *lock, const char *client_id, int lost)
{
    pthread_mutex_lock(&lock->mutex);
    lock->guards--;
    if (lost != 0 && lock->lost == 0 && lock->phase == LK_OCCUPIED &&
        strcmp(lock->client_id, client_id) == 0)
        lock->lost = lost;
    pthread_mutex_unlock(&lock->mutex);
    lk_renewer_wake(&lock->registry->renewer); /* it may be due by now */
    if (lost != 0)
        lk_expiry_wake(&lock->registry->expiry);
}
