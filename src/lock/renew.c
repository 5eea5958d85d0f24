/*
 * renew.c - renew one lock or many in the calling thread; renewer.c does so in
 * the background
 */
#include <stdlib.h>

#include "base/clock.h"
#include "base/error.h"
#include "lease/batch.h"
#include "lock/set.h"
#include "lock/renewal.h"

/* Pause before a renewal that collided with another one is tried again. */
#define COLLISION_NS (2 * LK_NS_PER_MS)

/* A renewal of the leases of a set.  pending[i] belongs to member i, which has
 * an item in the batch if its renewal has begun. */
struct renewals {
    struct lk_set *set;
    struct lk_renewal *pending;
    struct lk_batch batch;
    /* a lease may be due for renewal earlier than before */
    bool is_due_sooner;
    struct lk_renewal one;
    struct lk_item one_item;
};

static int begin(struct renewals *renewals, struct lk_set *set,
                 sqlock_error *err)
{
    *renewals = (struct renewals){.set = set};
    renewals->pending = &renewals->one;
    renewals->batch.items = &renewals->one_item;
    if (set->count == 1)
        return 0;
    renewals->pending = calloc(set->count, sizeof *renewals->pending);
    renewals->batch.items = calloc(set->count, sizeof *renewals->batch.items);
    if (renewals->pending == NULL || renewals->batch.items == NULL)
        return lk_error_nomem(err);
    return 0;
}

static void end(struct renewals *renewals)
{
    if (renewals->pending == &renewals->one)
        return;
    free(renewals->pending);
    free(renewals->batch.items);
}

/* Return whether a row was passed over that another renewal of this process,
 * such as the renewer's, may have had locked.  Only a batch passes over
 * rows. */
static bool has_collided(const struct renewals *renewals, size_t i)
{
    return renewals->set->count > 1 &&
           renewals->set->members[i].rc == SQLOCK_EBUSY &&
           renewals->pending[i].others_ns != 0 &&
           renewals->pending[i].others_ns != LK_NEVER;
}

static bool have_collided(const struct renewals *renewals)
{
    for (size_t i = 0; i < renewals->set->count; i++)
        if (has_collided(renewals, i))
            return true;
    return false;
}

/* Begin the renewal of each lease that the calling owner has, or of those that
 * have collided with another renewal, and put the leases into the batch. */
static void collect(struct renewals *renewals, uint32_t ttl_ms, bool is_again,
                    sqlock_error *err)
{
    struct lk_batch *batch = &renewals->batch;
    const struct lk_set *set = renewals->set;
    bool ends_sooner = false;

    batch->count = 0;
    for (size_t i = 0; i < set->count; i++) {
        struct lk_member *member = &set->members[i];
        struct lk_renewal *pending = &renewals->pending[i];
        struct lk_item *item = &batch->items[batch->count];

        if (is_again && !has_collided(renewals, i))
            continue;
        *pending = (struct lk_renewal){.others_ns = 0};
        *item = (struct lk_item){.owner = member};
        member->rc = lk_begin_renew(member->lock->slot, lk_caller(member->lock),
                                    ttl_ms, pending, &item->lease, err);
        if (member->rc < 0)
            continue;
        batch->count++;
        ends_sooner = ends_sooner || item->lease.ttl_ms < pending->old_ttl_ms;
        renewals->is_due_sooner = renewals->is_due_sooner ||
                                  pending->others_ns != LK_NEVER ||
                                  item->lease.ttl_ms != pending->old_ttl_ms;
    }
    if (ends_sooner) /* the deadline is earlier now, whatever the result */
        lk_handler_wake(&set->registry->expiry.handler);
}

static void settle(struct renewals *renewals, const struct lk_item *item)
{
    struct lk_member *member = item->owner;
    struct lk_slot *slot = member->lock->slot;
    struct lk_renewal *pending =
        &renewals->pending[member - renewals->set->members];

    member->rc = item->rc;
    pthread_mutex_lock(&slot->mutex);
    (void)lk_renewal_end(slot, pending, &item->lease, item->rc,
                         renewals->batch.sent_boot_ns);
    pthread_mutex_unlock(&slot->mutex);
}

/* Renew the leases of collect(), and set the results of their members. */
static int run(struct renewals *renewals, uint32_t ttl_ms, bool is_again,
               sqlock_error *err)
{
    sqlock_registry *registry = renewals->set->registry;
    struct lk_batch *batch = &renewals->batch;
    int rc;

    collect(renewals, ttl_ms, is_again, err);
    rc = lk_batch_renew(&registry->store, batch, err);
    for (size_t i = 0; i < batch->count; i++) {
        if (rc < 0)
            batch->items[i].rc = rc;
        else if (batch->items[i].rc < 0)
            (void)lk_renewal_error(batch->items[i].rc, err);
        settle(renewals, &batch->items[i]);
    }
    lk_handler_wake(&registry->expiry.handler);
    if (renewals->is_due_sooner)
        lk_handler_wake(&registry->renewer.handler);
    return rc;
}

/* Run the renewals.  A row that another renewal of this process has locked for
 * a moment is no row that a transaction has locked: try again when that is
 * over, within the same time. */
static int run_all(struct renewals *renewals, uint32_t ttl_ms,
                   sqlock_error *err)
{
    int64_t deadline_ns = lk_store_deadline(&renewals->set->registry->store);
    int rc;

    renewals->batch.deadline_ns = deadline_ns;
    rc = run(renewals, ttl_ms, false, err);
    while (rc == 0 && have_collided(renewals) &&
           sqlock_monotonic_ns() + COLLISION_NS < deadline_ns) {
        lk_sleep_until(sqlock_monotonic_ns() + COLLISION_NS);
        rc = run(renewals, ttl_ms, true, err);
    }
    return rc;
}

static int renew(struct lk_set *set, uint32_t ttl_ms, sqlock_error *err)
{
    struct renewals renewals;
    int rc = begin(&renewals, set, err);

    if (rc == 0)
        rc = run_all(&renewals, ttl_ms, err);
    end(&renewals);
    return rc;
}

int sqlock_renew(sqlock_lock *lock, uint32_t ttl_ms, sqlock_error *err)
{
    struct lk_set set;
    int rc = lk_lock_check(lock, err);

    if (rc < 0)
        return rc;
    lk_set_of_one(&set, lock);
    return lk_set_end(&set, renew(&set, ttl_ms, err), err);
}

int sqlock_renew_many(sqlock_lock *const *locks, size_t count, int *results,
                      sqlock_error *err)
{
    struct lk_set set;
    int rc = lk_set_begin(&set, locks, count, results, err);

    if (rc == 0)
        rc = renew(&set, 0, err);
    return lk_set_end(&set, rc, err);
}
