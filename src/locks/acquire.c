/*
 * acquire.c - taking, renewing and giving back a lock: who of this process has
 * a say, and how long to wait.  What is said to the database is in lease.c.
 */
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/random.h"
#include "locks/holding.h"
#include "locks/lease.h"

enum entry {
    ENTRY_AGAIN, /* nested: nothing to send */
    ENTRY_CLAIM  /* the lock's phase is LK_BUSY, for the caller */
};

static int not_in_time(int64_t wait_ms, sqlock_error *err)
{
    if (wait_ms == 0)
        return lk_error(err, SQLOCK_EBUSY, "the lock is held by another owner");
    return lk_error(err, SQLOCK_ETIMEDOUT,
                    "the lock was not free within %lld ms", (long long)wait_ms);
}

/* Called with the mutex held: nobody of this process is at it any more; the
 * first one that waits is next. */
static void leave(sqlock_lock *lock)
{
    lock->phase = lk_gate_pass(&lock->gate) ? LK_BUSY : LK_FREE;
}

/* Called with the mutex held. */
static int enter_again(sqlock_lock *lock, sqlock_error *err)
{
    if (lock->lost == SQLOCK_ELOST)
        return lk_error(err, SQLOCK_ELOST,
                        "the lease of this lock is lost: release it first");
    if (lk_remaining_ns(lock) == 0)
        return lk_error(err, SQLOCK_EEXPIRED,
                        "the lease of this lock ran out: release it first");
    if (lock->hold_count == UINT32_MAX)
        return lk_error(err, SQLOCK_EINVAL,
                        "the lock has been acquired too often");
    lock->hold_count++;
    return ENTRY_AGAIN;
}

/* Wait for the threads of this process that came before. */
static int enter(sqlock_lock *lock, int64_t wait_ms, int64_t deadline_ns,
                 sqlock_error *err)
{
    enum lk_call call = LK_CALL_NONE;
    int rc;

    pthread_mutex_lock(&lock->mutex);
    for (;;) {
        if (call != LK_CALL_TURN && lk_is_mine(lock)) {
            rc = enter_again(lock, err);
            break;
        }
        if (call == LK_CALL_TURN || lock->phase == LK_FREE) {
            lock->phase = LK_BUSY;
            rc = ENTRY_CLAIM;
            break;
        }
        if (wait_ms != 0)
            call = lk_gate_wait(&lock->gate, &lock->mutex, deadline_ns);
        if (call == LK_CALL_NONE) {
            rc = not_in_time(wait_ms, err);
            break;
        }
    }
    pthread_mutex_unlock(&lock->mutex);
    return rc;
}

/* Look, without locking anything, until the row is free or over.  0: it looks
 * free; ETIMEDOUT. */
static int wait_for_row(sqlock_lock *lock, int64_t wait_ms, int64_t deadline_ns,
                        sqlock_error *err)
{
    sqlock_registry *registry = lock->registry;
    int64_t poll_us = (int64_t)registry->options.poll_ms * 1000;

    for (;;) {
        int64_t pause_us = lk_random_between(poll_us * 3 / 4, poll_us * 5 / 4);
        struct lk_row row;
        int64_t now;
        int rc;

        rc = lk_lease_read(registry, lock->key, lk_statement_deadline(registry),
                           &row, err);
        if (rc < 0)
            return rc;
        if (!row.is_taken)
            return 0;
        now = sqlock_monotonic_ns();
        if (now >= deadline_ns)
            return not_in_time(wait_ms, err);
        /* Not a moment longer than the holder's lease, nor than the caller
         * wants to wait. */
        if (pause_us > row.remaining_us)
            pause_us = row.remaining_us + 1;
        lk_sleep_until(lk_sooner(now + pause_us * LK_NS_PER_US, deadline_ns));
    }
}

static int claim_until(sqlock_lock *lock, struct lk_lease *lease,
                       int64_t wait_ms, int64_t deadline_ns, sqlock_error *err)
{
    for (;;) {
        int rc = lk_lease_claim(lock->registry, lease, err);

        if (rc != SQLOCK_EBUSY || wait_ms == 0)
            return rc;
        rc = wait_for_row(lock, wait_ms, deadline_ns, err);
        if (rc < 0)
            return rc;
    }
}

/* Called with the mutex held. */
static void hold(sqlock_lock *lock, const struct lk_lease *lease,
                 const sqlock_acquire_options *options)
{
    lock->phase = LK_OCCUPIED;
    lock->owner = lk_thread_id();
    lock->hold_count = 1;
    memcpy(lock->client_id, lease->client_id, sizeof lock->client_id);
    lock->token = lease->token;
    lock->ttl_ms = lease->ttl_ms;
    lock->deadline_boot_ns = lease->deadline_boot_ns;
    lock->lost = 0;
    lock->is_fenced = options->fenced;
    lock->max_hold_ms = options->max_hold_ms;
    lock->acquired_boot_ns = lk_boottime_ns();
    lock->on_lost = options->on_lost;
    lock->lost_context = options->lost_context;
    lk_lost_fd_clear(lock);
    if (lock->registry->options.ownership == SQLOCK_OWNED_BY_REGISTRY)
        lk_gate_wake_all(&lock->gate); /* it is theirs as well */
}

/* Watching and renewing, as the acquisition asked for. */
static int begin_care(sqlock_lock *lock, const sqlock_acquire_options *options,
                      sqlock_error *err)
{
    sqlock_registry *registry = lock->registry;
    int rc = 0;

    if (options->keep || options->on_lost != NULL || lock->lost_fd >= 0)
        rc = lk_sentinel_watch(&registry->sentinel, lock, err);
    if (rc == 0 && options->keep)
        rc = lk_keeper_keep(&registry->keeper, lock, err);
    return rc;
}

/* In this order: no renewal begins after the first, no callback runs after the
 * second (F4). */
static void end_care(sqlock_lock *lock)
{
    lk_keeper_forget(&lock->registry->keeper, lock);
    lk_sentinel_forget(&lock->registry->sentinel, lock);
}

/* The options of this call in `complete`, its TTL filled in. */
static int check_acquire(const sqlock_lock *lock, int64_t wait_ms,
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
    };
    int rc;

    lk_ghosts_lay(lock->registry);
    rc = claim_until(lock, &lease, wait_ms, deadline_ns, err);

    pthread_mutex_lock(&lock->mutex);
    if (rc == 0)
        hold(lock, &lease, options);
    else
        leave(lock);
    pthread_mutex_unlock(&lock->mutex);
    return rc;
}

/* Called with the mutex held. */
static void copy_lease(const sqlock_lock *lock, struct lk_lease *out)
{
    memset(out, 0, sizeof *out);
    out->key = lock->key;
    out->ttl_ms = lock->ttl_ms;
    out->token = lock->token;
    out->deadline_boot_ns = lock->deadline_boot_ns;
    memcpy(out->client_id, lock->client_id, sizeof out->client_id);
}

static int not_owner(sqlock_error *err)
{
    return lk_error(err, SQLOCK_EOWNER,
                    "the calling thread does not own this lock");
}

/* Count one less.  0: nested, all done; 1: the outermost one, phase LK_BUSY. */
static int begin_release(sqlock_lock *lock, struct lk_lease *lease, int *lost,
                         sqlock_error *err)
{
    int rc = 0;

    pthread_mutex_lock(&lock->mutex);
    if (!lk_is_mine(lock)) {
        rc = not_owner(err);
    } else if (lock->hold_count > 1) {
        lock->hold_count--;
    } else {
        copy_lease(lock, lease);
        *lost = lock->lost;
        lock->phase = LK_BUSY;
        rc = 1;
    }
    pthread_mutex_unlock(&lock->mutex);
    return rc;
}

static int give_back(sqlock_lock *lock, sqlock_error *err)
{
    struct lk_lease lease;
    int lost = 0;
    int rc;

    rc = begin_release(lock, &lease, &lost, err);
    if (rc <= 0)
        return rc;

    end_care(lock);
    rc = lk_lease_release(lock->registry, &lease, err);
    /* Given up by ourselves, it may well have been ours still. */
    if (lost == SQLOCK_ELOST)
        rc = lk_error(err, SQLOCK_ELOST,
                      "the lease was lost before the release: what the lock "
                      "protects may be compromised");

    pthread_mutex_lock(&lock->mutex);
    lock->hold_count = 0;
    lock->lost = 0;
    lock->token = 0;
    leave(lock);
    pthread_mutex_unlock(&lock->mutex);
    return rc;
}

int sqlock_acquire(sqlock_lock *lock, int64_t wait_ms,
                   const sqlock_acquire_options *options, sqlock_error *err)
{
    sqlock_acquire_options complete;
    int64_t deadline_ns;
    int rc;

    rc = check_acquire(lock, wait_ms, options, &complete, err);
    if (rc < 0)
        return rc;
    deadline_ns = wait_ms == SQLOCK_FOREVER
                      ? LK_NEVER
                      : lk_after_ms(sqlock_monotonic_ns(), wait_ms);
    rc = enter(lock, wait_ms, deadline_ns, err);
    if (rc < 0)
        return rc;
    if (rc == ENTRY_AGAIN)
        return 0;
    rc = take(lock, wait_ms, deadline_ns, &complete, err);
    if (rc < 0)
        return rc;
    rc = begin_care(lock, &complete, err);
    if (rc < 0)
        (void)give_back(lock, NULL); /* not held as it was asked for */
    return rc;
}

int sqlock_release(sqlock_lock *lock, sqlock_error *err)
{
    int rc = lk_lock_check(lock, err);

    return rc < 0 ? rc : give_back(lock, err);
}

/* What a renewal needs, or why there is none. */
static int begin_renew(sqlock_lock *lock, struct lk_lease *lease,
                       sqlock_error *err)
{
    int rc = 0;

    pthread_mutex_lock(&lock->mutex);
    if (!lk_is_mine(lock))
        rc = not_owner(err);
    else if (lock->lost == SQLOCK_ELOST)
        rc = lk_error(err, SQLOCK_ELOST, "the lease of this lock is lost");
    else if (lk_remaining_ns(lock) == 0)
        rc = lk_error(err, SQLOCK_EEXPIRED,
                      "the lease ran out before it was renewed");
    else
        copy_lease(lock, lease);
    pthread_mutex_unlock(&lock->mutex);
    return rc;
}

int sqlock_renew(sqlock_lock *lock, uint32_t ttl_ms, sqlock_error *err)
{
    struct lk_lease lease = {0};
    uint32_t ttl = 0;
    int rc;

    rc = lk_lock_check(lock, err);
    if (rc < 0)
        return rc;
    rc = begin_renew(lock, &lease, err);
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
        if (rc == SQLOCK_ELOST || rc == SQLOCK_EEXPIRED)
            lock->lost = rc;
    }
    pthread_mutex_unlock(&lock->mutex);
    lk_sentinel_look(&lock->registry->sentinel);
    return rc;
}
