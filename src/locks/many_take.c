/*
 * many_take.c - taking several locks together: attempt by attempt, each with
 * the turns of all, and between them a wait for the one that was missing
 */
#include <stdlib.h>

#include "base/clock.h"
#include "base/error.h"
#include "wait/entry.h"
#include "locks/many.h"
#include "wait/overdue.h"
#include "wait/wait.h"

void lk_many_step_back(struct lk_many *call, const struct lk_part *kept)
{
    for (size_t i = 0; i < call->count; i++) {
        struct lk_part *part = &call->parts[i];

        if (part == kept)
            continue;
        pthread_mutex_lock(&part->entry->mutex);
        if (part->is_mine)
            lk_leave(part->entry);
        else if (part->is_nested)
            part->entry->hold_count--;
        pthread_mutex_unlock(&part->entry->mutex);
        part->is_mine = false;
        part->is_nested = false;
    }
}

/* As lk_enter() has let it in. */
static void note_entry(struct lk_part *part, int entry)
{
    part->rc = entry < 0 ? entry : 0;
    part->is_mine = entry == LK_ENTRY_CLAIM;
    part->is_nested = entry == LK_ENTRY_AGAIN;
    if (part->is_mine)
        lk_clear_aside(part->entry);
}

/* The turns at all that the call does not have yet, without waiting for any. */
static int enter_all(struct lk_many *call, sqlock_error *err)
{
    call->batch.count = 0;
    for (size_t i = 0; i < call->count; i++) {
        struct lk_part *part = &call->parts[i];
        struct lk_lease lease = {
            .key = part->entry->key,
            .name = part->entry->name,
            .ttl_ms = call->options->ttl_ms,
        };

        part->rc = 0;
        if (!part->is_mine && !part->is_nested) {
            call->probe.owner = lk_caller(part->lock);
            note_entry(part, lk_enter(part->entry, &call->probe, err));
        }
        if (part->rc < 0 && !call->options->partial) {
            call->missing = part;
            call->is_row_taken = false;
            return part->rc;
        }
        if (part->is_mine)
            lk_many_add(call, part, &lease);
    }
    return 0;
}

/* Give back what a claim that was not complete has got.  What cannot be is told
 * as uncertain, and is freed in the background. */
static int undo_grants(struct lk_many *call, sqlock_error *err)
{
    struct lk_batch granted = call->batch;
    int rc = 0;

    granted.count = 0;
    granted.items = calloc(call->batch.count, sizeof *granted.items);
    if (granted.items == NULL)
        rc = SQLOCK_ENOMEM; /* they run out by themselves */
    for (size_t i = 0; rc == 0 && i < call->batch.count; i++)
        if (call->batch.items[i].rc == 0 ||
            call->batch.items[i].rc == SQLOCK_ETIMEDOUT)
            granted.items[granted.count++] = call->batch.items[i];
    granted.deadline_ns = lk_store_deadline(&call->registry->store);
    if (granted.count > 0)
        rc = lk_batch_release(&call->registry->store, &granted, NULL);
    for (size_t i = 0; rc < 0 && i < granted.count; i++)
        ((struct lk_part *)granted.items[i].owner)->rc = SQLOCK_EUNCERTAIN;
    free(granted.items);
    if (rc < 0)
        rc = lk_error(err, SQLOCK_EUNCERTAIN,
                      "not all of the locks were to be had, and those that "
                      "were could not be given back: they will be free when "
                      "the database answers, or when their leases are over");
    return rc;
}

static struct lk_part *first_busy(const struct lk_many *call)
{
    for (size_t i = 0; i < call->batch.count; i++)
        if (call->batch.items[i].rc != 0)
            return call->batch.items[i].owner;
    return NULL;
}

/* Whether the answer took longer than one of the leases. */
static bool is_too_late(const struct lk_many *call)
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
static void take_out(struct lk_many *call, const bool *may_take,
                     bool is_partial, int rc)
{
    size_t count = 0;

    for (size_t i = 0; i < call->batch.count; i++) {
        struct lk_part *part = call->batch.items[i].owner;

        if (may_take[i]) {
            call->batch.items[count++] = call->batch.items[i];
            continue;
        }
        part->rc = rc;
        call->missing = part;
        call->is_row_taken = true;
        if (!is_partial)
            continue;
        pthread_mutex_lock(&part->entry->mutex);
        lk_leave(part->entry);
        pthread_mutex_unlock(&part->entry->mutex);
        part->is_mine = false;
    }
    if (is_partial)
        call->batch.count = count;
}

/* Observe before steal: as sqlock_acquire() does, for all of them. */
static int observe_all(struct lk_many *call, sqlock_error *err)
{
    bool is_partial = call->options->partial;
    size_t count = call->batch.count;
    struct lk_entry **entries = calloc(count, sizeof *entries);
    struct lk_observed *seen = calloc(count, sizeof *seen);
    bool *may_take = calloc(count, sizeof *may_take);
    int rc;

    if (entries == NULL || seen == NULL || may_take == NULL) {
        rc = lk_error_nomem(err);
        goto out;
    }
    for (size_t i = 0; i < count; i++) {
        const struct lk_part *part = call->batch.items[i].owner;

        entries[i] = part->entry;
        seen[i] = part->seen;
    }
    rc = lk_wait_for_rows(entries, count, &call->probe, seen, may_take, err);
    for (size_t i = 0; i < count; i++) {
        struct lk_part *part = call->batch.items[i].owner;

        part->seen = seen[i];
        call->batch.items[i].lease.observed = &part->seen;
    }
    if (rc == SQLOCK_EBUSY || rc == SQLOCK_ETIMEDOUT)
        take_out(call, may_take, is_partial, rc);
    if (rc == SQLOCK_EBUSY && is_partial)
        rc = 0;
out:
    free(entries);
    free(seen);
    free(may_take);
    return rc;
}

/* Once, with the turns of all. */
static int claim_all(struct lk_many *call, struct lk_waiter *self,
                     sqlock_error *err)
{
    struct lk_part *busy;
    int undone;
    int rc = 0;

    if (call->registry->store.options.observe_before_steal &&
        call->batch.count > 0)
        rc = observe_all(call, err);
    if (rc < 0 || call->batch.count == 0)
        return rc;
    if (self->wait_ms != 0 && lk_waiter_is_cancelled(self))
        return lk_canceled(err);
    call->batch.deadline_ns = lk_store_deadline(&call->registry->store);
    rc = lk_batch_claim(&call->registry->store, &call->batch, err);
    if (rc == 0 && is_too_late(call)) {
        undone = undo_grants(call, err);
        return undone < 0 ? undone
                          : lk_error(err, SQLOCK_ETIMEDOUT,
                                     "the claim took longer than its leases: "
                                     "raise ttl_ms");
    }
    busy = rc == 0 ? first_busy(call) : NULL;
    if (rc == 0 && (busy == NULL || call->options->partial))
        return 0;
    if (rc < 0 && rc != SQLOCK_EBUSY)
        return rc;
    /* Of those that were refused together, a row lock was in the way of one. */
    call->missing = busy != NULL ? busy : call->batch.items[0].owner;
    call->missing->rc = SQLOCK_EBUSY;
    call->is_row_taken = true;
    undone = busy != NULL ? undo_grants(call, err) : 0;
    return undone < 0 ? undone : lk_not_in_time(0, err);
}

/* The wait for a row has ended: its queue lock goes with the lease, if it
 * became one, or is given up. */
static void leave_row(struct lk_many *call, int rc)
{
    struct lk_place none = {0};
    struct lk_place *place = &none;

    if (call->at_row == NULL)
        return;
    for (size_t i = 0; rc == 0 && i < call->batch.count; i++)
        if (call->batch.items[i].owner == call->at_row &&
            call->batch.items[i].rc == 0)
            place = &call->batch.items[i].lease.place;
    lk_queue_finish(&call->wait, place,
                    place == &none && rc == 0 ? SQLOCK_EBUSY : rc);
    call->at_row = NULL;
}

/* With nothing but the place in the queue of that one. */
static int await_turn(struct lk_many *call, struct lk_waiter *self,
                      sqlock_error *err)
{
    int rc;

    self->owner = lk_caller(call->missing->lock);
    rc = lk_enter(call->missing->entry, self, err);

    note_entry(call->missing, rc);
    return rc < 0 ? rc : 0;
}

/* With nothing but the turn of that one. */
static int await_row(struct lk_many *call, struct lk_waiter *self,
                     sqlock_error *err)
{
    struct lk_part *part = call->missing;
    int rc;

    self->subscription.seen = part->seen;
    if (call->at_row == NULL)
        lk_queue_begin(&call->wait, part->entry, self);
    else
        lk_queue_refused(&call->wait);
    call->at_row = part;
    rc = lk_queue_await(&call->wait, err);
    part->seen = self->subscription.seen;
    if (rc < 0)
        part->rc = rc;
    return rc;
}

/* Whether an attempt may come out otherwise once the missing one is waited
 * for. */
static bool may_wait(const struct lk_many *call, const struct lk_waiter *self,
                     int rc)
{
    return self->wait_ms != 0 && call->missing != NULL &&
           call->missing->rc != SQLOCK_ELOST &&
           call->missing->rc != SQLOCK_EEXPIRED &&
           (rc == SQLOCK_EBUSY || rc == SQLOCK_EUNCERTAIN ||
            !call->is_row_taken);
}

static int acquire_all(struct lk_many *call, struct lk_waiter *self,
                       sqlock_error *err)
{
    for (;;) {
        struct lk_part *kept;
        int rc;

        call->missing = NULL;
        rc = enter_all(call, err);
        if (rc == 0)
            rc = claim_all(call, self, err);
        if (rc == 0 || !may_wait(call, self, rc))
            return rc;
        kept = call->is_row_taken ? call->missing : NULL;
        if (call->at_row != kept)
            leave_row(call, SQLOCK_EBUSY);
        lk_many_step_back(call, kept);
        if (sqlock_monotonic_ns() >= self->deadline_ns) {
            if (rc == SQLOCK_EUNCERTAIN)
                return rc;
            call->missing->rc = SQLOCK_ETIMEDOUT;
            return lk_not_in_time(self->wait_ms, err);
        }
        rc = kept != NULL ? await_row(call, self, err)
                          : await_turn(call, self, err);
        if (rc < 0)
            return rc;
    }
}

static void begin_concerns(struct lk_many *call, struct lk_waiter *self)
{
    for (size_t i = 0; self->wait_ms != 0 && i < call->count; i++)
        lk_concern_add(&call->registry->entries.canceller,
                       &call->parts[i].concern, call->parts[i].entry, self);
}

static void end_concerns(struct lk_many *call, const struct lk_waiter *self)
{
    for (size_t i = 0; self->wait_ms != 0 && i < call->count; i++)
        lk_concern_remove(&call->registry->entries.canceller,
                          &call->parts[i].concern);
}

int lk_many_take(struct lk_many *call, struct lk_waiter *self,
                 sqlock_error *err)
{
    int rc;

    begin_concerns(call, self);
    rc = acquire_all(call, self, err);
    leave_row(call, rc);
    end_concerns(call, self);
    return rc;
}
