/*
 * many.c - several locks in one call.  Threads of this process take their turns
 * in the order of the keys, and so do the statements: nobody waits crosswise.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "locks/batch.h"
#include "locks/entry.h"
#include "locks/wait.h"

/* A lock of the call, and where it stands. */
struct part {
    sqlock_lock *lock;
    size_t place; /* in the caller's array */
    bool is_mine; /* this call has its turn: LK_BUSY */
    bool is_nested;
    int lost;
    int rc;
    struct lk_renewal renewal;
};

struct call {
    sqlock_registry *registry;
    struct part *parts; /* by key */
    size_t count;
    struct lk_batch batch; /* of the parts that are mine */
    int *results;
};

static int by_key(const void *a, const void *b)
{
    const struct part *left = a;
    const struct part *right = b;

    return strcmp(left->lock->key, right->lock->key);
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
    call->parts = calloc(count, sizeof *call->parts);
    call->batch.items = calloc(count, sizeof *call->batch.items);
    if (call->parts == NULL || call->batch.items == NULL)
        return lk_error_nomem(err);
    for (size_t i = 0; i < count; i++) {
        call->parts[i].lock = locks[i];
        call->parts[i].place = i;
    }
    qsort(call->parts, count, sizeof *call->parts, by_key);
    for (size_t i = 1; i < count; i++)
        if (call->parts[i].lock == call->parts[i - 1].lock)
            return lk_error(err, SQLOCK_EINVAL, "a lock is given twice");
    call->results = results;
    return 0;
}

/* Free the call; the first part that failed decides where nothing else has. */
static int end_call(struct call *call, int rc, sqlock_error *err)
{
    for (size_t i = 0; call->parts != NULL && i < call->count; i++) {
        const struct part *part = &call->parts[i];
        int result = rc < 0 && part->rc == 0 ? rc : part->rc;

        if (call->results != NULL)
            call->results[part->place] = result;
    }
    for (size_t i = 0; rc == 0 && call->parts != NULL && i < call->count; i++) {
        rc = call->parts[i].rc;
        if (rc < 0)
            rc = lk_error(err, rc, "%s: %s", call->parts[i].lock->key,
                          sqlock_strerror(rc));
    }
    free(call->parts);
    free(call->batch.items);
    return rc;
}

static void add_to_batch(struct call *call, struct part *part,
                         const struct lk_lease *lease)
{
    struct lk_item *item = &call->batch.items[call->batch.count++];

    memset(item, 0, sizeof *item);
    item->lease = *lease;
    item->owner = part;
}

/* --- acquiring --- */

/* The turns that were not used, and the counts that are not wanted. */
static void step_back(struct call *call)
{
    for (size_t i = 0; i < call->count; i++) {
        struct part *part = &call->parts[i];

        pthread_mutex_lock(&part->lock->mutex);
        if (part->is_mine)
            lk_leave(part->lock);
        else if (part->is_nested)
            part->lock->hold_count--;
        pthread_mutex_unlock(&part->lock->mutex);
        part->is_mine = false;
        part->is_nested = false;
    }
}

static int enter_all(struct call *call, struct lk_waiter *self,
                     const sqlock_acquire_options *options, sqlock_error *err)
{
    for (size_t i = 0; i < call->count; i++) {
        struct part *part = &call->parts[i];
        struct lk_lease lease = {
            .key = part->lock->key,
            .name = part->lock->name,
            .ttl_ms = options->ttl_ms,
        };
        int rc = lk_enter(part->lock, self, err);

        part->rc = rc < 0 ? rc : 0;
        if (rc < 0 && !options->partial)
            return rc;
        part->is_mine = rc == LK_ENTRY_CLAIM;
        part->is_nested = rc == LK_ENTRY_AGAIN;
        if (part->is_mine)
            add_to_batch(call, part, &lease);
    }
    return 0;
}

/* Give back what a claim that was not complete has got. */
static void undo_grants(struct call *call)
{
    struct lk_batch granted = call->batch;
    size_t count = 0;

    granted.items = calloc(call->batch.count, sizeof *granted.items);
    if (granted.items == NULL)
        return; /* they run out by themselves */
    for (size_t i = 0; i < call->batch.count; i++)
        if (call->batch.items[i].rc == 0 ||
            call->batch.items[i].rc == SQLOCK_ETIMEDOUT)
            granted.items[count++] = call->batch.items[i];
    granted.count = count;
    granted.deadline_ns = lk_statement_deadline(call->registry);
    if (count > 0)
        (void)lk_batch_release(call->registry, &granted, NULL);
    free(granted.items);
}

static struct part *first_busy(const struct call *call)
{
    for (size_t i = 0; i < call->batch.count; i++)
        if (call->batch.items[i].rc != 0)
            return call->batch.items[i].owner;
    return NULL;
}

/* Whether the answer took longer than one of the leases. */
static bool is_too_late(const struct call *call)
{
    int64_t now = lk_boottime_ns();

    for (size_t i = 0; i < call->batch.count; i++) {
        const struct lk_item *item = &call->batch.items[i];

        if (item->rc == SQLOCK_ETIMEDOUT ||
            (item->rc == 0 && item->lease.deadline_boot_ns <= now))
            return true;
    }
    return false;
}

/* The parts whose rows may not be taken yet, and with `partial` will not. */
static void take_out(struct call *call, const bool *may_take, bool is_partial,
                     int rc)
{
    size_t count = 0;

    for (size_t i = 0; i < call->batch.count; i++) {
        struct part *part = call->batch.items[i].owner;

        if (may_take[i]) {
            call->batch.items[count++] = call->batch.items[i];
            continue;
        }
        part->rc = rc;
        if (!is_partial)
            continue;
        pthread_mutex_lock(&part->lock->mutex);
        lk_leave(part->lock);
        pthread_mutex_unlock(&part->lock->mutex);
        part->is_mine = false;
    }
    if (is_partial)
        call->batch.count = count;
}

/* Observe before steal: as sqlock_acquire() does, for all of them. */
static int observe_all(struct call *call, struct lk_waiter *self,
                       bool is_partial, sqlock_error *err)
{
    size_t count = call->batch.count;
    sqlock_lock **locks = calloc(count, sizeof *locks);
    bool *may_take = calloc(count, sizeof *may_take);
    int rc;

    if (locks == NULL || may_take == NULL) {
        rc = lk_error_nomem(err);
        goto out;
    }
    for (size_t i = 0; i < count; i++)
        locks[i] = ((struct part *)call->batch.items[i].owner)->lock;
    rc = lk_wait_for_rows(locks, count, self, may_take, err);
    if (rc == SQLOCK_EBUSY || rc == SQLOCK_ETIMEDOUT)
        take_out(call, may_take, is_partial, rc);
    if (rc == SQLOCK_EBUSY && is_partial)
        rc = 0;
out:
    free(locks);
    free(may_take);
    return rc;
}

static int claim_all(struct call *call, struct lk_waiter *self, bool is_partial,
                     sqlock_error *err)
{
    for (;;) {
        struct part *busy;
        int rc = 0;

        if (call->registry->options.observe_before_steal)
            rc = observe_all(call, self, is_partial, err);
        if (rc < 0 || call->batch.count == 0)
            return rc;
        if (self->wait_ms != 0 && lk_waiter_is_cancelled(self))
            return lk_canceled(err);
        call->batch.deadline_ns = lk_statement_deadline(call->registry);
        rc = lk_batch_claim(call->registry, &call->batch, err);
        if (rc == 0 && is_too_late(call)) {
            undo_grants(call);
            return lk_error(err, SQLOCK_ETIMEDOUT,
                            "the claim took longer than its leases: raise "
                            "ttl_ms");
        }
        busy = rc == 0 ? first_busy(call) : NULL;
        if (rc == 0 && (busy == NULL || is_partial))
            return 0;
        if (rc < 0 && rc != SQLOCK_EBUSY)
            return rc;
        if (busy == NULL)
            busy = call->batch.items[0].owner; /* a row lock was in the way */
        else
            undo_grants(call);
        if (self->wait_ms == 0) {
            busy->rc = SQLOCK_EBUSY;
            return lk_not_in_time(self->wait_ms, err);
        }
        if (sqlock_monotonic_ns() >= self->deadline_ns) {
            busy->rc = SQLOCK_ETIMEDOUT;
            return lk_not_in_time(self->wait_ms, err);
        }
        rc = lk_wait_for_row(busy->lock, self, err);
        if (rc < 0) {
            busy->rc = rc;
            return rc;
        }
    }
}

/* Turns become leases, or are given up. */
static void settle_claims(struct call *call,
                          const sqlock_acquire_options *options)
{
    for (size_t i = 0; i < call->batch.count; i++) {
        const struct lk_item *item = &call->batch.items[i];
        struct part *part = item->owner;

        part->rc = item->rc;
        pthread_mutex_lock(&part->lock->mutex);
        if (item->rc == 0)
            lk_hold(part->lock, &item->lease, options, lk_thread_id());
        else
            lk_leave(part->lock);
        pthread_mutex_unlock(&part->lock->mutex);
        part->is_mine = item->rc == 0;
    }
}

/* Watching and renewing: with `partial`, of each for itself. */
static int begin_care(struct call *call, const sqlock_acquire_options *options,
                      sqlock_error *err)
{
    int result = 0;

    for (size_t i = 0; i < call->count; i++) {
        struct part *part = &call->parts[i];

        if (!part->is_mine)
            continue;
        part->rc = lk_begin_care(part->lock, options, result == 0 ? err : NULL);
        if (result == 0)
            result = part->rc;
    }
    return result;
}

/* Count one less, or put it into the batch to be given back. */
static void begin_release(struct call *call, struct part *part)
{
    struct lk_lease lease;
    int rc =
        lk_begin_release(part->lock, lk_thread_id(), &lease, &part->lost, NULL);

    part->rc = rc < 0 ? rc : 0;
    if (rc != 1)
        return;
    lk_end_care(part->lock);
    add_to_batch(call, part, &lease);
}

static void end_release(struct call *call, sqlock_error *err)
{
    int rc = 0;

    call->batch.deadline_ns = lk_statement_deadline(call->registry);
    if (call->batch.count > 0)
        rc = lk_batch_release(call->registry, &call->batch, err);
    for (size_t i = 0; i < call->batch.count; i++) {
        struct part *part = call->batch.items[i].owner;

        part->rc = rc < 0 ? rc : call->batch.items[i].rc;
        if (part->lost == SQLOCK_ELOST ||
            (part->lost == SQLOCK_EEXPIRED && part->rc == 0))
            part->rc = part->lost;
        lk_end_release(part->lock);
    }
}

/* What cannot be held as it was asked for is not held at all; rc is why. */
static void give_back(struct call *call, bool is_partial, int rc)
{
    call->batch.count = 0;
    for (size_t i = 0; i < call->count; i++) {
        struct part *part = &call->parts[i];

        if (part->is_mine ? part->rc < 0 || !is_partial
                          : part->is_nested && !is_partial)
            begin_release(call, part);
    }
    end_release(call, NULL);
    for (size_t i = 0; i < call->batch.count; i++)
        ((struct part *)call->batch.items[i].owner)->rc = rc;
}

int sqlock_acquire_many(sqlock_lock *const *locks, size_t count,
                        int64_t wait_ms, const sqlock_acquire_options *options,
                        int *results, sqlock_error *err)
{
    sqlock_acquire_options complete = {0};
    struct lk_waiter self;
    struct call call;
    int rc;

    rc = begin_call(&call, locks, count, results, err);
    if (rc == 0)
        rc = lk_check_acquire(locks[0], wait_ms, options, &complete, err);
    if (rc == 0 && complete.partial && wait_ms != 0)
        rc = lk_error(err, SQLOCK_EINVAL, "with partial, wait_ms must be 0");
    if (rc < 0)
        return end_call(&call, rc, err);

    lk_waiter_init(&self, wait_ms, NULL);
    rc = lk_canceller_watch(&call.registry->canceller, &self,
                            complete.cancel_fd, err);
    if (rc == 0)
        rc = enter_all(&call, &self, &complete, err);
    lk_ghosts_lay(call.registry);
    if (rc == 0 && call.batch.count > 0)
        rc = claim_all(&call, &self, complete.partial, err);
    lk_canceller_forget(&call.registry->canceller, &self);
    if (rc < 0)
        step_back(&call);
    else
        settle_claims(&call, &complete);
    lk_waiter_clear(&self); /* it is at none of them any more */
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
    struct call call;
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
    struct part *part = item->owner;
    sqlock_lock *lock = part->lock;

    part->rc = item->rc;
    pthread_mutex_lock(&lock->mutex);
    (void)lk_renewal_end(lock, &part->renewal, &item->lease, item->rc,
                         sent_boot_ns);
    pthread_mutex_unlock(&lock->mutex);
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
        struct part *part = &call.parts[i];
        struct lk_lease lease;
        uint32_t ttl_ms = 0;

        part->rc =
            lk_begin_renew(part->lock, &ttl_ms, &part->renewal, &lease, NULL);
        if (part->rc == 0)
            add_to_batch(&call, part, &lease);
    }
    call.batch.deadline_ns = lk_statement_deadline(call.registry);
    if (call.batch.count > 0)
        rc = lk_batch_renew(call.registry, &call.batch, err);
    for (size_t i = 0; i < call.batch.count; i++) {
        if (rc < 0)
            call.batch.items[i].rc = rc;
        settle_renewal(&call.batch.items[i], call.batch.sent_boot_ns);
    }
    lk_sentinel_look(&call.registry->sentinel);
    return end_call(&call, rc, err);
}
