/*
 * acquire.c - taking, renewing and giving back a lock: who of this process has
 * a say, and how long to wait.  What is said to the database is in lease.c.
 */
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "locks/entry.h"

static int claim_until(sqlock_lock *lock, struct lk_lease *lease,
                       int64_t wait_ms, int64_t deadline_ns, sqlock_error *err)
{
    int rc = 0;

    if (lock->registry->options.observe_before_steal)
        rc = lk_wait_for_row(lock, wait_ms, deadline_ns, err);
    while (rc == 0) {
        rc = lk_lease_claim(lock->registry, lease, err);
        if (rc != SQLOCK_EBUSY || wait_ms == 0)
            return rc;
        /* A row that a transaction keeps locked may look free all the time. */
        if (sqlock_monotonic_ns() >= deadline_ns)
            return lk_not_in_time(wait_ms, err);
        rc = lk_wait_for_row(lock, wait_ms, deadline_ns, err);
    }
    return rc;
}

/* The options of this call in `complete`, its TTL filled in. */
int lk_check_acquire(const sqlock_lock *lock, int64_t wait_ms,
                     const sqlock_acquire_options *options,
                     sqlock_acquire_options *complete, sqlock_error *err)
{
    int rc;

    memset(complete, 0, sizeof *complete);
    rc = lk_lock_check(lock, err);
    if (rc < 0)
        return rc;
    if (wait_ms < SQLOCK_FOREVER)
        return lk_error(err, SQLOCK_EINVAL,
                        "wait_ms is %lld: use 0, a time in ms, or "
                        "SQLOCK_FOREVER",
                        (long long)wait_ms);
    if (options != NULL) {
        if (options->size < sizeof options->size ||
            options->size > sizeof *options)
            return lk_error(err, SQLOCK_EINVAL,
                            "sqlock_acquire_options.size is %zu: begin with "
                            "SQLOCK_ACQUIRE_INIT",
                            options->size);
        memcpy(complete, options, options->size);
    }
    return lk_ttl_check(&complete->ttl_ms, complete->ttl_ms,
                        lock->registry->options.ttl_ms, err);
}

/* The lock's phase is LK_BUSY, for the caller: take the row. */
static int take(sqlock_lock *lock, int64_t wait_ms, int64_t deadline_ns,
                const sqlock_acquire_options *options, sqlock_error *err)
{
    struct lk_lease lease = {
        .key = lock->key,
        .name = lock->name,
        .ttl_ms = options->ttl_ms,
        .is_left_free = lock->is_left_free,
    };
    int rc;

    lk_ghosts_lay(lock->registry);
    rc = claim_until(lock, &lease, wait_ms, deadline_ns, err);

    lock->is_left_free = false;
    pthread_mutex_lock(&lock->mutex);
    if (rc == 0)
        lk_hold(lock, &lease, options);
    else
        lk_leave(lock);
    pthread_mutex_unlock(&lock->mutex);
    return rc;
}

static int give_back(sqlock_lock *lock, sqlock_error *err)
{
    struct lk_lease lease;
    int lost = 0;
    int rc;

    rc = lk_begin_release(lock, &lease, &lost, err);
    if (rc <= 0)
        return rc;

    lk_end_care(lock);
    rc = lk_lease_release(lock->registry, &lease, err);
    lock->is_left_free = rc == 0;
    /* Given up by ourselves, it may well have been ours still. */
    if (lost == SQLOCK_ELOST)
        rc = lk_error(err, SQLOCK_ELOST,
                      "the lease was lost before the release: what the lock "
                      "protects may be compromised");
    else if (lost == SQLOCK_EEXPIRED && rc == 0)
        rc = lk_error(err, SQLOCK_EEXPIRED,
                      "the lease had run out before the release; nobody else "
                      "has had the lock");

    lk_end_release(lock);
    return rc;
}

int sqlock_acquire(sqlock_lock *lock, int64_t wait_ms,
                   const sqlock_acquire_options *options, sqlock_error *err)
{
    sqlock_acquire_options complete;
    int64_t deadline_ns;
    int rc;

    rc = lk_check_acquire(lock, wait_ms, options, &complete, err);
    if (rc < 0)
        return rc;
    deadline_ns = wait_ms == SQLOCK_FOREVER
                      ? LK_NEVER
                      : lk_after_ms(sqlock_monotonic_ns(), wait_ms);
    rc = lk_enter(lock, wait_ms, deadline_ns, err);
    if (rc < 0)
        return rc;
    if (rc == LK_ENTRY_AGAIN)
        return 0;
    rc = take(lock, wait_ms, deadline_ns, &complete, err);
    if (rc < 0)
        return rc;
    rc = lk_begin_care(lock, &complete, err);
    if (rc < 0)
        (void)give_back(lock, NULL); /* not held as it was asked for */
    return rc;
}

int sqlock_release(sqlock_lock *lock, sqlock_error *err)
{
    int rc = lk_lock_check(lock, err);

    return rc < 0 ? rc : give_back(lock, err);
}

int sqlock_renew(sqlock_lock *lock, uint32_t ttl_ms, sqlock_error *err)
{
    struct lk_lease lease = {0};
    uint32_t ttl = 0;
    int rc;

    rc = lk_lock_check(lock, err);
    if (rc < 0)
        return rc;
    rc = lk_begin_renew(lock, &lease, err);
    if (rc < 0)
        return rc;
    rc = lk_ttl_check(&ttl, ttl_ms, lease.ttl_ms, err);
    if (rc < 0)
        return rc;
    rc = lk_lease_renew(lock->registry, &lease, ttl, err);

    pthread_mutex_lock(&lock->mutex);
    /* Owned by the registry, it may have been released meanwhile. */
    if (lock->phase == LK_OCCUPIED &&
        strcmp(lock->client_id, lease.client_id) == 0) {
        lock->ttl_ms = lease.ttl_ms;
        lock->deadline_boot_ns = lease.deadline_boot_ns;
        /* The keeper may have met one that got no answer meanwhile. */
        lk_cap_lock(lock, lock->cap_ms, lk_boottime_ns());
        lk_cap_lock(lock, lease.cap_ms, lk_boottime_ns());
        if (rc == SQLOCK_ELOST || rc == SQLOCK_EEXPIRED)
            lock->lost = rc;
    }
    pthread_mutex_unlock(&lock->mutex);
    lk_sentinel_look(&lock->registry->sentinel);
    return rc;
}
