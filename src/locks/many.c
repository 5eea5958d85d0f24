/*
 * many.c - several locks in one call.  Statements touch rows in the order of
 * their keys.  Who waits for one of the locks has neither the turns nor the
 * rows of the others meanwhile: nobody waits crosswise.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "locks/acquire.h"
#include "locks/care.h"
#include "locks/many.h"

static int by_key(const void *a, const void *b)
{
    const struct lk_part *left = a;
    const struct lk_part *right = b;

    return strcmp(left->entry->key, right->entry->key);
}

static int check_locks(sqlock_lock *const *locks, size_t count,
                       sqlock_error *err)
{
    if (locks == NULL || count == 0 || count > SQLOCK_MANY_MAX)
        return lk_error(err, SQLOCK_EINVAL, "1 to %d locks can be given",
                        SQLOCK_MANY_MAX);
    for (size_t i = 0; i < count; i++) {
        int rc = lk_lock_check(locks[i], err);

        if (rc < 0)
            return rc;
        if (locks[i]->registry != locks[0]->registry)
            return lk_error(err, SQLOCK_EINVAL,
                            "the locks belong to different registries");
    }
    return 0;
}

static int begin_call(struct lk_many *call, sqlock_lock *const *locks,
                      size_t count, int *results, sqlock_error *err)
{
    int rc;

    memset(call, 0, sizeof *call);
    rc = check_locks(locks, count, err);
    if (rc < 0)
        return rc;
    call->registry = locks[0]->registry;
    call->count = count;
    call->parts = calloc(count, sizeof *call->parts);
    call->batch.items = calloc(count, sizeof *call->batch.items);
    if (call->parts == NULL || call->batch.items == NULL)
        return lk_error_nomem(err);
    for (size_t i = 0; i < count; i++) {
        call->parts[i].lock = locks[i];
        call->parts[i].entry = locks[i]->entry;
        call->parts[i].place = i;
    }
    qsort(call->parts, count, sizeof *call->parts, by_key);
    for (size_t i = 1; i < count; i++)
        if (call->parts[i].entry == call->parts[i - 1].entry)
            return lk_error(err, SQLOCK_EINVAL, "a lock is given twice");
    call->results = results;
    return 0;
}

/* Free the call; the first part that failed decides where nothing else has. */
static int end_call(struct lk_many *call, int rc, sqlock_error *err)
{
    for (size_t i = 0; call->parts != NULL && i < call->count; i++) {
        const struct lk_part *part = &call->parts[i];
        int result = rc < 0 && part->rc == 0 ? rc : part->rc;

        if (call->results != NULL)
            call->results[part->place] = result;
    }
    for (size_t i = 0; rc == 0 && call->parts != NULL && i < call->count; i++) {
        rc = call->parts[i].rc;
        if (rc < 0)
            rc = lk_error(err, rc, "%s: %s", call->parts[i].entry->key,
                          sqlock_strerror(rc));
    }
    free(call->parts);
    free(call->batch.items);
    return rc;
}

void lk_many_add(struct lk_many *call, struct lk_part *part,
                 const struct lk_lease *lease)
{
    struct lk_item *item = &call->batch.items[call->batch.count++];

    memset(item, 0, sizeof *item);
    item->lease = *lease;
    item->owner = part;
}

/* --- acquiring --- */

/* Turns become leases, or are given up. */
static void settle_claims(struct lk_many *call,
                          const sqlock_acquire_options *options)
{
    for (size_t i = 0; i < call->batch.count; i++) {
        const struct lk_item *item = &call->batch.items[i];
        struct lk_part *part = item->owner;

        part->rc = item->rc;
        pthread_mutex_lock(&part->entry->mutex);
        if (item->rc == 0)
            part->grant = lk_hold(part->entry, &item->lease, options,
                                  lk_caller(part->lock));
        else
            lk_leave(part->entry);
        pthread_mutex_unlock(&part->entry->mutex);
        part->is_mine = item->rc == 0;
    }
}

/* Watching and renewing: with `partial`, of each for itself. */
static int begin_care(struct lk_many *call,
                      const sqlock_acquire_options *options, sqlock_error *err)
{
    int result = 0;

    for (size_t i = 0; i < call->count; i++) {
        struct lk_part *part = &call->parts[i];

        if (!part->is_mine)
            continue;
        part->rc = lk_begin_care(part->lock, part->grant, options,
                                 result == 0 ? err : NULL);
        if (result == 0)
            result = part->rc;
    }
    return result;
}

/* Count one less, or put it into the batch to be given back. */
static void begin_release(struct lk_many *call, struct lk_part *part)
{
    struct lk_lease lease;
    int rc = lk_begin_give_back(part->lock, lk_caller(part->lock), &lease,
                                &part->lost, NULL);

    part->rc = rc < 0 ? rc : 0;
    if (rc <= 0)
        return;
    part->is_overdue = rc == LK_RELEASE_OVERDUE;
    lk_many_add(call, part, &lease);
}

static void end_release(struct lk_many *call, sqlock_error *err)
{
    int rc = 0;

    call->batch.deadline_ns = lk_store_deadline(&call->registry->store);
    if (call->batch.count > 0)
        rc = lk_batch_release(&call->registry->store, &call->batch, err);
    for (size_t i = 0; i < call->batch.count; i++) {
        struct lk_part *part = call->batch.items[i].owner;

        part->rc = rc < 0 ? rc : call->batch.items[i].rc;
        if (part->lost == SQLOCK_ELOST ||
            (part->lost == SQLOCK_EEXPIRED && part->rc == 0))
            part->rc = part->lost;
        if (!part->is_overdue)
            lk_end_release(part->entry);
    }
}

/* What cannot be held as it was asked for is not held at all; rc is why. */
static void give_back(struct lk_many *call, bool is_partial, int rc)
{
    call->batch.count = 0;
    for (size_t i = 0; i < call->count; i++) {
        struct lk_part *part = &call->parts[i];

        if (part->is_mine ? part->rc < 0 || !is_partial
                          : part->is_nested && !is_partial)
            begin_release(call, part);
    }
    end_release(call, NULL);
    for (size_t i = 0; i < call->batch.count; i++)
        ((struct lk_part *)call->batch.items[i].owner)->rc = rc;
}

int sqlock_acquire_many(sqlock_lock *const *locks, size_t count,
                        int64_t wait_ms, const sqlock_acquire_options *options,
                        int *results, sqlock_error *err)
{
    sqlock_acquire_options complete = {0};
    struct lk_waiter self;
    struct lk_many call;
    int rc;

    rc = begin_call(&call, locks, count, results, err);
    if (rc == 0)
        rc = lk_check_acquire(&locks[0]->registry->store, wait_ms, options,
                              &complete, err);
    if (rc == 0 && complete.partial && wait_ms != 0)
        rc = lk_error(err, SQLOCK_EINVAL, "with partial, wait_ms must be 0");
    if (rc < 0)
        return end_call(&call, rc, err);

    call.options = &complete;
    lk_waiter_init(&self, wait_ms, NULL);
    lk_waiter_init(&call.probe, 0, NULL);
    self.owner = lk_caller(locks[0]);
    call.probe.owner = self.owner;
    rc = lk_canceller_watch(&call.registry->entries.canceller, &self,
                            complete.cancel_fd, err);
    if (rc == 0)
        rc = lk_many_take(&call, &self, err);
    lk_canceller_forget(&call.registry->entries.canceller, &self);
    if (rc < 0)
        lk_many_step_back(&call, NULL);
    else
        settle_claims(&call, &complete);
    lk_waiter_clear(&self); /* it is at none of them any more */
    lk_waiter_clear(&call.probe);
    if (rc < 0)
        return end_call(&call, rc, err);
    rc = begin_care(&call, &complete, err);
    if (rc < 0)
        give_back(&call, complete.partial, rc);
    return end_call(&call, complete.partial ? 0 : rc, err);
}

/* --- releasing --- */

int sqlock_release_many(sqlock_lock *const *locks, size_t count, int *results,
                        sqlock_error *err)
{
    struct lk_many call;
    int rc;

    rc = begin_call(&call, locks, count, results, err);
    if (rc < 0)
        return end_call(&call, rc, err);
    for (size_t i = 0; i < count; i++)
        begin_release(&call, &call.parts[i]);
    end_release(&call, err);
    return end_call(&call, 0, err);
}

/* --- renewing --- */

static void settle_renewal(const struct lk_item *item, int64_t sent_boot_ns)
{
    struct lk_part *part = item->owner;
    struct lk_entry *entry = part->entry;

    part->rc = item->rc;
    pthread_mutex_lock(&entry->mutex);
    (void)lk_renewal_end(entry, &part->renewal, &item->lease, item->rc,
                         sent_boot_ns);
    pthread_mutex_unlock(&entry->mutex);
}

int sqlock_renew_many(sqlock_lock *const *locks, size_t count, int *results,
                      sqlock_error *err)
{
    struct lk_many call;
    int rc;

    rc = begin_call(&call, locks, count, results, err);
    if (rc < 0)
        return end_call(&call, rc, err);
    for (size_t i = 0; i < count; i++) {
        struct lk_part *part = &call.parts[i];
        struct lk_lease lease;
        uint32_t ttl_ms = 0;

        part->rc = lk_begin_renew(part->entry, lk_caller(part->lock), &ttl_ms,
                                  &part->renewal, &lease, NULL);
        if (part->rc == 0)
            lk_many_add(&call, part, &lease);
    }
    call.batch.deadline_ns = lk_store_deadline(&call.registry->store);
    if (call.batch.count > 0)
        rc = lk_batch_renew(&call.registry->store, &call.batch, err);
    for (size_t i = 0; i < call.batch.count; i++) {
        if (rc < 0)
            call.batch.items[i].rc = rc;
        settle_renewal(&call.batch.items[i], call.batch.sent_boot_ns);
    }
    lk_expiry_wake(&call.registry->expiry);
    return end_call(&call, rc, err);
}
