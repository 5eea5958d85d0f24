/*
 * acquire.c - taking, renewing and giving back a lock: who of this process has
 * a say, and how long to wait.  What is said to the database is in lease.c.
 */
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "locks/bell.h"
#include "locks/entry.h"
#include "locks/wait.h"

/* An acquisition that met others who wait goes to their queue first, and so do
 * some that follow it: a releaser does not overtake those it has just woken. */
#define CROWD 16

static int claim_in_turn(sqlock_lock *lock, struct lk_lease *lease,
                         struct lk_waiter *self, struct lk_bell_wait *wait,
                         sqlock_error *err)
{
    int rc = 0;

    if (lock->registry->options.observe_before_steal) {
        rc = lk_wait_for_row(lock, self, err);
    } else if (lock->crowd > 0 && self->wait_ms != 0 &&
               lk_bell_is_there(wait)) {
        lock->crowd--;
        rc = lk_bell_await(wait, err);
    }
    while (rc == 0) {
        if (self->wait_ms != 0 && lk_waiter_is_cancelled(self))
            return lk_canceled(err);
        rc = lk_lease_claim(lock->registry, lease, err);
        if (rc != SQLOCK_EBUSY || self->wait_ms == 0)
            return rc;
        lk_bell_refused(wait);
        lock->crowd = CROWD;
        /* A row that a transaction keeps locked may look free all the time. */
        if (sqlock_monotonic_ns() >= self->deadline_ns)
            return lk_not_in_time(self->wait_ms, err);
        rc = lk_bell_await(wait, err);
    }
    return rc;
}

static int claim_until(sqlock_lock *lock, struct lk_lease *lease,
                       struct lk_waiter *self, sqlock_error *err)
{
    struct lk_bell_wait wait;
    int rc;

    lk_bell_begin(&wait, lock, self);
    rc = claim_in_turn(lock, lease, self, &wait, err);
    lk_bell_finish(&wait, rc == 0 ? &lease->bell : NULL);
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
static int take(sqlock_lock *lock, struct lk_waiter *self, sqlock_error *err)
{
    struct lk_lease lease = {
        .key = lock->key,
        .name = lock->name,
        .ttl_ms = self->options->ttl_ms,
        .is_left_free = lock->is_left_free,
    };
    int rc;

    lk_ghosts_lay(lock->registry);
    rc = claim_until(lock, &lease, self, err);

    lock->is_left_free = false;
    pthread_mutex_lock(&lock->mutex);
    if (rc == 0)
        lk_hold(lock, &lease, self->options, self->thread);
    else
        lk_leave(lock);
    pthread_mutex_unlock(&lock->mutex);
    return rc;
}

/* From this lease to that of the thread that is next, in one statement: true
 * when it was done, or *rc says that the release is done all the same. */
static bool pass_on(sqlock_lock *lock, const struct lk_lease *lease,
                    const struct lk_waiter *next, struct lk_lease *given,
                    int *rc, sqlock_error *err)
{
    memset(given, 0, sizeof *given);
    given->key = lock->key;
    given->name = lock->name;
    given->ttl_ms = next->options->ttl_ms;
    *rc = lk_lease_hand_over(lock->registry, lease, given, err);
    return *rc == 0 || *rc == SQLOCK_ETIMEDOUT;
}

/* The end of a lease that nobody was there to take over, or whose hand-over did
 * not come about. */
static int end_lease(sqlock_lock *lock, struct lk_lease *lease, int lost,
                     sqlock_error *err)
{
    int rc = lk_lease_release(lock->registry, lease, err);

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
    return rc;
}

/* As a hand-over left it; the lock goes to the next thread whatever the result.
 */
static int hand_over(sqlock_lock *lock, struct lk_lease *lease,
                     struct lk_waiter *next, sqlock_error *err)
{
    struct lk_lease given;
    int handed;
    int rc = 0;

    if (!pass_on(lock, lease, next, &given, &handed, err)) {
        rc = end_lease(lock, lease, 0, err);
        /* It may have been carried out after all, by the late statement. */
        if (handed == SQLOCK_EUNCERTAIN && rc == SQLOCK_ELOST)
            rc = lk_error(err, SQLOCK_EUNCERTAIN,
                          "the connection broke under the release, and the row "
                          "does not say whether the lock had been lost before");
    }
    lk_end_hand_over(lock, next, handed == 0 ? &given : NULL);
    return rc;
}

static int give_back(sqlock_lock *lock, sqlock_error *err)
{
    struct lk_waiter *next;
    struct lk_lease lease;
    int lost = 0;
    int rc;

    rc = lk_begin_release(lock, &lease, &lost, err);
    if (rc <= 0)
        return rc;

    lk_end_care(lock);
    next = lk_begin_hand_over(lock);
    if (next != NULL)
        return hand_over(lock, &lease, next, err);
    rc = end_lease(lock, &lease, lost, err);
    lk_end_release(lock);
    return rc;
}

static int acquire(sqlock_lock *lock, struct lk_waiter *self, sqlock_error *err)
{
    int rc = lk_enter(lock, self, err);

    if (rc < 0)
        return rc;
    if (rc == LK_ENTRY_AGAIN)
        return 0;
    if (rc == LK_ENTRY_CLAIM)
        rc = take(lock, self, err);
    if (rc < 0)
        return rc;
    rc = lk_begin_care(lock, self->options, err);
    if (rc < 0)
        (void)give_back(lock, NULL); /* not held as it was asked for */
    return rc;
}

int sqlock_acquire(sqlock_lock *lock, int64_t wait_ms,
                   const sqlock_acquire_options *options, sqlock_error *err)
{
    sqlock_acquire_options complete;
    struct lk_waiter self;
    int rc;

    rc = lk_check_acquire(lock, wait_ms, options, &complete, err);
    if (rc < 0)
        return rc;
    lk_waiter_init(&self, wait_ms, &complete);
    rc = lk_canceller_watch(&lock->registry->canceller, &self,
                            complete.cancel_fd, err);
    if (rc == 0)
        rc = acquire(lock, &self, err);
    lk_canceller_forget(&lock->registry->canceller, &self);
    lk_waiter_clear(&self);
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
