/*
 * many.c - several locks in one call.  Statements touch rows in the order of
 * their keys.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "lease/batch.h"
#include "locks/acquire.h"
#include "locks/care.h"
#include "sqlock/many.h"

/* A lock of the call, and what became of it. */
struct one {
    sqlock_lock *lock;
    size_t place; /* in the caller's array */
    int rc;
    /* of a release */
    int begun; /* as lk_begin_give_back() */
    int lost;
    /* of a renewal */
    struct lk_renewal renewal;
};

struct call {
    sqlock_registry *registry;
    struct one *ones; /* by key */
    size_t count;
    struct lk_batch batch; /* what is sent; owners are of `ones` */
    int *results;
};

static int by_key(const void *a, const void *b)
{
    const struct one *left = a;
    const struct one *right = b;

    return strcmp(left->lock->entry->key, right->lock->entry->key);
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

static int begin_call(struct call *call, sqlock_lock *const *locks,
                      size_t count, int *results, sqlock_error *err)
{
    int rc;

    memset(call, 0, sizeof *call);
    rc = check_locks(locks, count, err);
    if (rc < 0)
        return rc;
    call->registry = locks[0]->registry;
    call->count = count;
    call->ones = calloc(count, sizeof *call->ones);
    call->batch.items = calloc(count, sizeof *call->batch.items);
    if (call->ones == NULL || call->batch.items == NULL)
        return lk_error_nomem(err);
    for (size_t i = 0; i < count; i++) {
        call->ones[i].lock = locks[i];
        call->ones[i].place = i;
    }
    qsort(call->ones, count, sizeof *call->ones, by_key);
    for (size_t i = 1; i < count; i++)
        if (call->ones[i].lock->entry == call->ones[i - 1].lock->entry)
            return lk_error(err, SQLOCK_EINVAL, "a lock is given twice");
    call->results = results;
    return 0;
}

/* Free the call; the first lock that failed decides where nothing else has. */
static int end_call(struct call *call, int rc, sqlock_error *err)
{
    size_t count = call->ones != NULL ? call->count : 0;

    for (size_t i = 0; i < count; i++) {
        const struct one *one = &call->ones[i];

        if (call->results != NULL)
            call->results[one->place] = rc < 0 && one->rc == 0 ? rc : one->rc;
    }
    for (size_t i = 0; rc == 0 && i < count; i++) {
        rc = call->ones[i].rc;
        if (rc < 0)
            rc = lk_error(err, rc, "%s: %s", call->ones[i].lock->entry->key,
                          sqlock_strerror(rc));
    }
    free(call->ones);
    free(call->batch.items);
    return rc;
}

static void add(struct call *call, struct one *one,
                const struct lk_lease *lease)
{
    call->batch.items[call->batch.count++] =
        (struct lk_item){.lease = *lease, .owner = one};
}

/* --- releasing --- */

/* Count one less, or put it into the batch to be given back. */
static void begin_release(struct call *call, struct one *one)
{
    struct lk_lease lease;

    one->begun = lk_begin_give_back(one->lock, lk_caller(one->lock), &lease,
                                    &one->lost, NULL);
    one->rc = one->begun < 0 ? one->begun : 0;
    if (one->begun > 0)
        add(call, one, &lease);
}

static void end_release(struct call *call, sqlock_error *err)
{
    int rc = 0;

    call->batch.deadline_ns = lk_store_deadline(&call->registry->store);
    if (call->batch.count > 0)
        rc = lk_batch_release(&call->registry->store, &call->batch, err);
    for (size_t i = 0; i < call->batch.count; i++) {
        struct one *one = call->batch.items[i].owner;

        one->rc = rc < 0 ? rc : call->batch.items[i].rc;
        if (one->lost == 0)
            lk_count_over(&call->registry->store.db.stats,
                          one->lock->entry->key, one->rc);
        if (one->lost == SQLOCK_ELOST ||
            (one->lost == SQLOCK_EEXPIRED && one->rc == 0))
            one->rc = one->lost;
        if (one->begun != LK_RELEASE_OVERDUE)
            lk_end_release(one->lock->entry);
        lk_tell_released(one->lock, call->batch.items[i].lease.token, one->lost,
                         one->rc);
    }
}

int sqlock_release_many(sqlock_lock *const *locks, size_t count, int *results,
                        sqlock_error *err)
{
    struct call call;
    int rc;

    rc = begin_call(&call, locks, count, results, err);
    if (rc < 0)
        return end_call(&call, rc, err);
    for (size_t i = 0; i < count; i++)
        begin_release(&call, &call.ones[i]);
    end_release(&call, err);
    return end_call(&call, 0, err);
}

/* --- acquiring --- */

/* Watching and renewing: with `partial`, of each for itself. */
static int begin_care(struct call *call, const struct lk_acquisition *a,
                      sqlock_error *err)
{
    int result = 0;

    for (size_t i = 0; i < call->count; i++) {
        struct one *one = &call->ones[i];

        if (a->parts[i].state != LK_PART_HELD)
            continue;
        one->rc = lk_begin_care(one->lock, a->parts[i].grant, &a->options,
                                result == 0 ? err : NULL);
        if (result == 0)
            result = one->rc;
    }
    return result;
}

/* What cannot be held as it was asked for is not held at all; rc is why. */
static void give_back(struct call *call, const struct lk_acquisition *a, int rc)
{
    for (size_t i = 0; i < call->count; i++) {
        struct one *one = &call->ones[i];
        bool is_held = a->parts[i].state == LK_PART_HELD;
        bool is_nested = a->parts[i].state == LK_PART_NESTED;

        if (is_held ? one->rc < 0 || !a->is_partial
                    : is_nested && !a->is_partial)
            begin_release(call, one);
    }
    end_release(call, NULL);
    for (size_t i = 0; i < call->batch.count; i++)
        ((struct one *)call->batch.items[i].owner)->rc = rc;
}

static int acquire_all(struct call *call, int64_t wait_ms,
                       const sqlock_acquire_options *options, sqlock_error *err)
{
    struct lk_acquisition a;
    int rc = lk_acquisition_begin(&a, &call->registry->entries, call->count,
                                  wait_ms, options, err);

    if (rc < 0)
        return rc;
    if (a.options.partial && wait_ms != 0) {
        lk_acquisition_end(&a);
        return lk_error(err, SQLOCK_EINVAL, "with partial, wait_ms must be 0");
    }
    a.is_partial = a.options.partial;
    for (size_t i = 0; i < call->count; i++)
        lk_acquisition_add(&a, i, call->ones[i].lock->entry,
                           lk_caller(call->ones[i].lock));
    (void)lk_acquisition_enter(&a, err);
    rc = lk_acquisition_run(&a, err);
    for (size_t i = 0; i < call->count; i++)
        call->ones[i].rc = a.parts[i].rc;
    if (rc == 0)
        rc = begin_care(call, &a, err);
    if (rc < 0 && a.rc == 0)
        give_back(call, &a, rc);
    if (a.is_partial && a.rc == 0)
        rc = 0;
    lk_acquisition_end(&a);
    return rc;
}

int sqlock_acquire_many(sqlock_lock *const *locks, size_t count,
                        int64_t wait_ms, const sqlock_acquire_options *options,
                        int *results, sqlock_error *err)
{
    struct call call;
    int rc;

    rc = begin_call(&call, locks, count, results, err);
    if (rc == 0)
        rc = acquire_all(&call, wait_ms, options, err);
    return end_call(&call, rc, err);
}

/* --- renewing --- */

static void settle_renewal(const struct lk_item *item, int64_t sent_boot_ns)
{
    struct one *one = item->owner;
    struct lk_entry *entry = one->lock->entry;

    one->rc = item->rc;
    pthread_mutex_lock(&entry->mutex);
    (void)lk_renewal_end(entry, &one->renewal, &item->lease, item->rc,
                         sent_boot_ns);
    pthread_mutex_unlock(&entry->mutex);
}

int sqlock_renew_many(sqlock_lock *const *locks, size_t count, int *results,
                      sqlock_error *err)
{
    struct call call;
    int rc;

    rc = begin_call(&call, locks, count, results, err);
    if (rc < 0)
        return end_call(&call, rc, err);
    for (size_t i = 0; i < count; i++) {
        struct one *one = &call.ones[i];
        struct lk_lease lease;
        uint32_t ttl_ms = 0;

        one->rc = lk_begin_renew(one->lock->entry, lk_caller(one->lock),
                                 &ttl_ms, &one->renewal, &lease, NULL);
        if (one->rc == 0)
            add(&call, one, &lease);
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
    lk_renewer_wake(&call.registry->renewer); /* due sooner, beside others */
    return end_call(&call, rc, err);
}
