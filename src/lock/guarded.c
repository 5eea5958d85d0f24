/*
 * guarded.c - mark the leases that open transactions guard
 *
 * A guard has the rows of its leases locked, so the renewer leaves these leases
 * out: a renewal would only wait.
 */
#include "lock/guarded.h"

#include <string.h>

#include "base/error.h"
#include "lock/acquire.h"
#include "lock/overdue.h"

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

/* Keep the lock as long as it is guarded, even if its last reference is
 * dropped. */
static void pin(sqlock_lock *lock)
{
    pthread_mutex_lock(&lock->registry->mutex);
    lock->pins++;
    pthread_mutex_unlock(&lock->registry->mutex);
}

static void unpin(sqlock_lock *lock)
{
    sqlock_registry *registry = lock->registry;

    pthread_mutex_lock(&registry->mutex);
    lk_lock_unpin(lock);
    pthread_mutex_unlock(&registry->mutex);
}

int lk_guard_begin(sqlock_lock *lock, const struct lk_store *store,
                   struct lk_lease *lease, sqlock_error *err)
{
    const struct lk_overdue *overdue;
    struct lk_slot *slot;
    int rc;

    if (lock == NULL || &lock->registry->store != store)
        return lk_error(
            err, SQLOCK_EINVAL,
            "the lock belongs to another registry than the transaction");
    rc = lk_lock_check(lock, err);
    if (rc < 0)
        return rc;
    slot = lock->slot;
    pthread_mutex_lock(&slot->mutex);
    overdue = lk_overdue_of(slot, lk_caller(lock));
    if (!lk_is_owned_by(slot, lk_caller(lock))) {
        rc = overdue != NULL ? over(overdue->lost, err) : lk_not_owner(err);
    } else if (slot->lost != 0) {
        rc = over(slot->lost, err);
    } else {
        *lease = slot->lease;
        slot->guards++;
    }
    pthread_mutex_unlock(&slot->mutex);
    if (rc == 0)
        pin(lock);
    return rc;
}

void lk_guard_end(sqlock_lock *lock, const char *client_id, int lost)
{
    struct lk_slot *slot = lock->slot;
    uint64_t owed = 0; /* the grant that is to be released; 0: none */

    pthread_mutex_lock(&slot->mutex);
    slot->guards--;
    if (lost != 0 && slot->lost == 0 && slot->phase == LK_OCCUPIED &&
        strcmp(slot->lease.client_id, client_id) == 0)
        (void)lk_lose(slot, lost);
    if (slot->guards == 0 && slot->phase == LK_OCCUPIED &&
        slot->hold_count == 0)
        owed = slot->grant;
    pthread_mutex_unlock(&slot->mutex);
    /* the lease may be due for renewal by now */
    lk_handler_wake(&lock->registry->renewer.handler);
    if (lost != 0)
        lk_handler_wake(&lock->registry->expiry.handler);
    if (owed != 0)
        lk_undo(lock, owed);
    unpin(lock);
}
