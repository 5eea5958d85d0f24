/*
 * renew.c - renew one lock or many in the calling thread; renewer.c does so in
 * the background
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/thread.h"
#include "lease/batch.h"
#include "lock/call.h"
#include "lock/hold.h"
#include "lock/set.h"

/* Pauses before a renewal that collided with another one is tried again: the
 * first one, and the longest, since each of them grows. */
#define COLLISION_LEAST_NS (2 * LK_NS_PER_MS)
#define COLLISION_MOST_NS (16 * LK_NS_PER_MS)

/* Begin a renewal for that TTL (0: the lease's own), and copy the lease.
 * Return 0, or EINVAL (the TTL) or a result of lk_hold_usable(): then nothing
 * has begun, and there is no hold.  The caller holds the mutex. */
static int begin_one(struct lk_member *member, uint32_t ttl_ms,
                     struct lk_lease *lease, sqlock_error *err)
{
    const sqlock_lock *lock = member->lock;
    int rc =
        lk_hold_usable(lock->slot, lk_caller(lock), false, &member->hold, err);

    if (rc < 0)
        member->hold = NULL;
    if (rc == 0)
        rc = lk_ttl_check(&lock->slot->store->options, &ttl_ms, ttl_ms,
                          member->hold->lease.asked.ttl_ms, err);
    if (rc < 0)
        return rc;
    *lease = member->hold->lease;
    lease->asked.ttl_ms = lk_capped_ms(lease, ttl_ms);
    lk_renewal_begin(member->hold, &member->renewal, lease->asked.ttl_ms);
    lease->asked.ttl_ms = member->renewal.row_ttl_ms;
    return 0;
}

/* Return whether a row was passed over that another renewal of this process,
 * such as the renewer's, may have had locked.  Only a batch passes over
 * rows. */
static bool has_collided(const struct lk_set *set, size_t i)
{
    const struct lk_member *member = &set->members[i];

    return set->count > 1 && member->rc == SQLOCK_EBUSY &&
           member->hold != NULL && member->renewal.others_ns != LK_NEVER;
}

static bool have_collided(const struct lk_set *set)
{
    for (size_t i = 0; i < set->count; i++)
        if (has_collided(set, i))
            return true;
    return false;
}

/* Wait until none of the leases is becoming a share, which would wait for the
 * renewals that have begun.  The caller holds the mutex. */
static void await_downgrades(const struct lk_set *set)
{
    bool has_waited = true;

    while (has_waited) {
        has_waited = false;
        for (size_t i = 0; i < set->count; i++) {
            const sqlock_lock *lock = set->members[i].lock;

            if (lk_call_await_downgrade(lock->slot, lk_caller(lock)))
                has_waited = true;
        }
    }
}

/* Begin the renewal of each lease that the calling owner has, or of those that
 * have collided with another renewal, and put the leases into the batch.
 * Return whether one may be due earlier than before. */
static bool collect(struct lk_set *set, uint32_t ttl_ms, bool is_again,
                    sqlock_error *err)
{
    struct lk_batch *batch = &set->batch;
    bool is_due_sooner = false;
    bool ends_sooner = false;

    batch->count = 0;
    pthread_mutex_lock(&lk_mutex);
    await_downgrades(set);
    for (size_t i = 0; i < set->count; i++) {
        struct lk_member *member = &set->members[i];
        const struct lk_renewal *renewal = &member->renewal;
        struct lk_item *item = &batch->items[batch->count];

        if (is_again && !has_collided(set, i))
            continue;
        *item = (struct lk_item){.owner = member};
        member->rc = begin_one(member, ttl_ms, &item->lease, err);
        if (member->rc < 0)
            continue;
        batch->count++;
        ends_sooner = ends_sooner || renewal->ttl_ms < renewal->old_ttl_ms;
        is_due_sooner = is_due_sooner || renewal->others_ns != LK_NEVER ||
                        renewal->ttl_ms != renewal->old_ttl_ms;
    }
    pthread_mutex_unlock(&lk_mutex);
    if (ends_sooner) /* the deadline is earlier now, whatever the result */
        lk_handler_wake(&set->registry->expiry.handler);
    return is_due_sooner;
}

/* Set the results, and end the renewals that have begun. */
static void settle(struct lk_set *set, int rc, sqlock_error *err)
{
    struct lk_batch *batch = &set->batch;

    set->is_refused = rc < 0;
    pthread_mutex_lock(&lk_mutex);
    for (size_t i = 0; i < batch->count; i++) {
        struct lk_item *item = &batch->items[i];
        struct lk_member *member = item->owner;

        if (rc < 0)
            item->rc = rc;
        member->rc =
            lk_renewal_end(member->hold, &member->renewal, &item->lease,
                           item->rc, batch->sent_boot_ns);
        member->is_told = (rc < 0 || item->is_told) && member->rc == item->rc;
        if (rc == 0 && !member->is_told)
            (void)lk_renewal_error(member->rc, err);
    }
    pthread_mutex_unlock(&lk_mutex);
    lk_batch_end_bells(&set->registry->store, batch, false, false);
}

/* Renew the leases of collect(), and set the results of their members. */
static int run(struct lk_set *set, uint32_t ttl_ms, bool is_again,
               sqlock_error *err)
{
    sqlock_registry *registry = set->registry;
    bool is_due_sooner = collect(set, ttl_ms, is_again, err);
    int rc = lk_batch_renew(&registry->store, &set->batch, err);

    settle(set, rc, err);
    lk_handler_wake(&registry->expiry.handler);
    if (is_due_sooner)
        lk_handler_wake(&registry->renewer.handler);
    return rc;
}

/* Run the renewals.  A row that another renewal of this process has locked for
 * a moment is no row that a transaction has locked: try again when that is
 * over, within the time for all. */
static int renew(struct lk_set *set, uint32_t ttl_ms, sqlock_error *err)
{
    const struct lk_store *store = &set->registry->store;
    int64_t deadline_ns = lk_batch_deadline(store, set->count);
    int64_t pause_ns = COLLISION_LEAST_NS;
    int before = lk_cancel_defer();
    int rc;

    set->batch.deadline_ns = lk_store_deadline(store);
    rc = run(set, ttl_ms, false, err);
    while (rc == 0 && have_collided(set) &&
           sqlock_monotonic_ns() + pause_ns < deadline_ns) {
        lk_sleep_until(sqlock_monotonic_ns() + pause_ns);
        pause_ns = lk_sooner(2 * pause_ns, COLLISION_MOST_NS);
        set->batch.deadline_ns =
            lk_sooner(deadline_ns, lk_store_deadline(store));
        rc = run(set, ttl_ms, true, err);
    }
    lk_cancel_allow(before);
    return rc;
}

int sqlock_renew(sqlock_lock *lock, uint32_t ttl_ms, sqlock_error *err)
{
    struct lk_set set;
    sqlock_error own = {0};
    int rc = lk_lock_check(lock, err);

    if (rc < 0)
        return rc;
    lk_set_of_one(&set, lock);
    rc = lk_set_end(&set, renew(&set, ttl_ms, &own), &own);
    return lk_error_pass(err, &own, rc);
}

int sqlock_renew_many(sqlock_lock *const *locks, size_t count, int *results,
                      sqlock_error *err)
{
    struct lk_set set;
    sqlock_error own = {0};
    int rc = lk_set_begin(&set, locks, count, results, &own);

    if (rc == 0)
        rc = renew(&set, 0, &own);
    return lk_error_pass(err, &own, lk_set_end(&set, rc, &own));
}
