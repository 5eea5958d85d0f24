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

/* Begin the renewal of each lease that the calling owner has, and put the
 * leases into the batch. */
static void collect(struct renewals *renewals, uint32_t ttl_ms,
                    sqlock_error *err)
{
    struct lk_batch *batch = &renewals->batch;
    const struct lk_set *set = renewals->set;
    bool ends_sooner = false;

    for (size_t i = 0; i < set->count; i++) {
        struct lk_member *member = &set->members[i];
        struct lk_renewal *pending = &renewals->pending[i];
        struct lk_item *item = &batch->items[batch->count];

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

static int run(struct renewals *renewals, uint32_t ttl_ms, sqlock_error *err)
{
    sqlock_registry *registry = renewals->set->registry;
    struct lk_batch *batch = &renewals->batch;
    int rc;

    collect(renewals, ttl_ms, err);
    batch->deadline_ns = lk_store_deadline(&registry->store);
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

static int renew(struct lk_set *set, uint32_t ttl_ms, sqlock_error *err)
{
    struct renewals renewals;
    int rc = begin(&renewals, set, err);

    if (rc == 0)
        rc = run(&renewals, ttl_ms, err);
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
