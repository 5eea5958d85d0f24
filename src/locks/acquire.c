/*
 * acquire.c - taking, renewing and giving back one lock
 */
#include "locks/acquire.h"

#include "base/clock.h"
#include "locks/care.h"
#include "wait/release.h"

int lk_give_back(sqlock_lock *lock, uint64_t owner, sqlock_error *err)
{
    struct lk_lease lease;
    int lost = 0;
    int rc = lk_begin_give_back(lock, owner, &lease, &lost, err);

    return rc <= 0 ? rc : lk_end_give_back(lock, rc, &lease, lost, err);
}

int lk_begin_give_back(sqlock_lock *lock, uint64_t owner,
                       struct lk_lease *lease, int *lost, sqlock_error *err)
{
    uint64_t grant = 0;
    int rc = lk_begin_release(lock->entry, owner, lease, &grant, lost, err);

    if (rc > 0)
        lk_end_care(lock, grant);
    return rc;
}

int lk_end_give_back(sqlock_lock *lock, int begun, struct lk_lease *lease,
                     int lost, sqlock_error *err)
{
    int64_t token = lease->token;
    int rc = begun == LK_RELEASE_OVERDUE
                 ? lk_end_overdue(lock->entry, lease, lost, err)
                 : lk_end_lease(lock->entry, lease, lost, err);

    lk_tell_released(lock, token, lost, rc);
    return rc;
}

int lk_take(sqlock_lock *lock, struct lk_acquisition *a, sqlock_error *err)
{
    const struct lk_part *part = a->parts;
    int rc = lk_acquisition_run(a, err);

    if (rc != 0 || part->state != LK_PART_HELD)
        return rc;
    rc = lk_begin_care(lock, part->grant, &a->options, err);
    if (rc < 0) /* not held as it was asked for */
        (void)lk_give_back(lock, part->owner, NULL);
    return rc;
}

int sqlock_acquire(sqlock_lock *lock, int64_t wait_ms,
                   const sqlock_acquire_options *options, sqlock_error *err)
{
    struct lk_acquisition a;
    int rc = lk_lock_check(lock, err);

    if (rc == 0)
        rc = lk_acquisition_begin(&a, &lock->registry->entries, 1, wait_ms,
                                  options, err);
    if (rc < 0)
        return rc;
    lk_acquisition_add(&a, 0, lock->entry, lk_caller(lock));
    (void)lk_acquisition_enter(&a, err);
    rc = lk_take(lock, &a, err);
    lk_acquisition_end(&a);
    return rc;
}

int sqlock_cancel(sqlock_lock *lock, sqlock_error *err)
{
    int rc = lk_lock_check(lock, err);

    if (rc == 0)
        lk_entry_cancel(lock->entry,
                        lk_is_shared(lock->registry) ? 0 : lock->owner);
    return rc;
}

int sqlock_release(sqlock_lock *lock, sqlock_error *err)
{
    int rc = lk_lock_check(lock, err);

    return rc < 0 ? rc : lk_give_back(lock, lk_caller(lock), err);
}

int sqlock_renew(sqlock_lock *lock, uint32_t ttl_ms, sqlock_error *err)
{
    struct lk_renewal renewal = {0};
    struct lk_lease lease = {0};
    sqlock_registry *registry;
    int rc;

    rc = lk_lock_check(lock, err);
    if (rc == 0)
        rc = lk_begin_renew(lock->entry, lk_caller(lock), &ttl_ms, &renewal,
                            &lease, err);
    if (rc < 0)
        return rc;
    registry = lock->registry;
    if (ttl_ms < lease.ttl_ms) /* it ends sooner from here on */
        lk_expiry_wake(&registry->expiry);
    rc = lk_lease_renew(&registry->store, &lease, ttl_ms, err);

    pthread_mutex_lock(&lock->entry->mutex);
    (void)lk_renewal_end(lock->entry, &renewal, &lease, rc, lk_boottime_ns());
    pthread_mutex_unlock(&lock->entry->mutex);
    lk_expiry_wake(&registry->expiry);
    if (ttl_ms != renewal.old_ttl_ms || renewal.others_ns != LK_NEVER)
        lk_renewer_wake(&registry->renewer); /* due sooner than it was */
    return rc;
}
