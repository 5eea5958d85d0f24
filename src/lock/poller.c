/*
 * poller.c - read all rows that a process waits for with one statement, at
 * intervals, and earlier when a lease is about to end
 */
#include "lock/poller.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/clock.h"
#include "base/random.h"
#include "lease/row.h"
#include "lease/ticket.h"
#include "lock/slot.h"
#include "lock/peers.h"

/* Pause after a read that failed. */
#define AGAIN_NS (10 * LK_NS_PER_MS)

/* Where a bell is lacking for now: half the first pause, and when to look for
 * the bell again. */
#define FIRST_PAUSE_NS (LK_NS_PER_MS / 2)
#define BELL_MS 5000

/* Mean time between two reads within which the reservation of a row, of
 * LK_RESERVED_MS, is seen. */
#define RESERVED_US 600000

/* Return the longest pause between two reads for a part.  The first in the
 * queue reads most often, and the others less often, but often enough to see
 * that the row is reserved for them. */
static int64_t longest_ns(const struct lk_slots *all,
                          const struct lk_part *part)
{
    int64_t poll_us = (int64_t)all->store->options.poll_ms * 1000;
    int64_t times = part->slot->place > 0 ? part->slot->place + 1 : 1;
    int64_t longest_us = lk_later(poll_us, RESERVED_US);

    poll_us = lk_sooner(poll_us * times, longest_us);
    return lk_random_between(poll_us * 3 / 4, poll_us * 5 / 4) * LK_NS_PER_US;
}

/* Return how long the part is not to claim the row. */
static int64_t blocked_ns(struct lk_part *part, const struct lk_row *row)
{
    int64_t left_ns = lk_peers_look(part, row);
    bool is_ours = row->is_taken && part->slot->ticket[0] != '\0' &&
                   strcmp(row->client_id, part->slot->ticket) == 0;

    return is_ours ? 0 : left_ns;
}

/* The caller of the static functions before look_when_due() holds the poller's
 * mutex. */

/* Remove a subscription. */
static void unlist(struct lk_poller *poller, struct lk_waiter *waiter)
{
    DL_DELETE2(poller->subscriptions, waiter, subscription.previous,
               subscription.next);
    poller->count--;
    waiter->subscription.part = NULL;
}

/* End the subscription, and wake the waiter with that result. */
static void wake(struct lk_poller *poller, struct lk_waiter *waiter, int rc,
                 const sqlock_error *err)
{
    unlist(poller, waiter);
    waiter->subscription.rc = rc;
    if (rc < 0)
        waiter->subscription.err = *err;
    lk_waiter_wake(waiter, LK_WAKE_ROW);
}

/* Collect the keys that are due, or nearly due, sorted.  The caller also holds
 * the mutex of the slots.  Out of memory: the batch stays empty. */
static void gather(struct lk_poller *poller, struct lk_batch *batch)
{
    int64_t soon =
        sqlock_monotonic_ns() +
        (int64_t)poller->all->store->options.poll_ms * LK_NS_PER_MS / 2;
    struct lk_waiter *waiter;

    batch->items = calloc(poller->count, sizeof *batch->items);
    if (batch->items == NULL)
        return;
    DL_FOREACH2(poller->subscriptions, waiter, subscription.next)
    {
        struct lk_slot *slot = waiter->subscription.part->slot;

        if (waiter->subscription.due_ns > soon || batch->count == LK_BATCH_MAX)
            continue;
        /* The reference keeps the slot and its key if the waiter leaves
         * meanwhile. */
        slot->references++;
        batch->items[batch->count++] =
            (struct lk_item){.lease = {.key = slot->key}, .owner = slot};
        memcpy(batch->items[batch->count - 1].lease.client_id, slot->ticket,
               sizeof slot->ticket);
    }
    lk_batch_sort(batch);
}

/* Return whether the row has a different holder than when it was first read, or
 * it is time to look for its bell, or to renew the ticket. */
static bool has_changed(struct lk_subscription *subscription,
                        const struct lk_row *row)
{
    if (sqlock_monotonic_ns() >= subscription->ends_ns)
        return true;
    if (subscription->until != LK_POLL_UNTIL_CHANGED)
        return false;
    if (subscription->holder[0] == '\0')
        memcpy(subscription->holder, row->client_id,
               sizeof subscription->holder);
    return strcmp(subscription->holder, row->client_id) != 0;
}

/* Set the time of the next read.  Where a bell is only lacking for now, the
 * first pauses are short. */
static void put_off(const struct lk_poller *poller, struct lk_waiter *waiter,
                    int64_t left_ns)
{
    struct lk_subscription *subscription = &waiter->subscription;
    int64_t pause_ns = longest_ns(poller->all, subscription->part);

    if (subscription->until == LK_POLL_UNTIL_CHANGED) {
        pause_ns = lk_sooner(pause_ns, 2 * subscription->pause_ns);
        subscription->pause_ns = pause_ns;
    }
    subscription->due_ns = sqlock_monotonic_ns() + lk_sooner(pause_ns, left_ns);
}

/* Wake the waiters whose rows are as wanted or could not be read, and set the
 * next read of the others. */
static void report(struct lk_poller *poller, const struct lk_batch *batch,
                   int rc, const sqlock_error *err)
{
    struct lk_waiter *waiter;
    struct lk_waiter *next;

    DL_FOREACH_SAFE2(poller->subscriptions, waiter, next, subscription.next)
    {
        struct lk_part *part = waiter->subscription.part;
        const struct lk_row *row = lk_row_of(batch, part->slot->key);
        int64_t left_ns;

        if (row == NULL)
            continue; /* the row was not among those read */
        if (rc == 0 && row->place >= 0)
            part->slot->place = row->place;
        left_ns = rc < 0 ? 0 : blocked_ns(part, row);
        if (left_ns == 0 || has_changed(&waiter->subscription, row))
            wake(poller, waiter, rc, err);
        else
            put_off(poller, waiter, left_ns);
    }
}

/* Read the due rows and report them.  The mutex is released during the
 * statement. */
static void look(struct lk_poller *poller)
{
    struct lk_slots *all = poller->all;
    struct lk_batch batch = {0};
    sqlock_error err = {0};
    int rc = SQLOCK_EBUSY;

    pthread_mutex_lock(&all->mutex);
    gather(poller, &batch);
    pthread_mutex_unlock(&all->mutex);
    pthread_mutex_unlock(&poller->mutex);
    if (batch.count > 0) {
        batch.deadline_ns = lk_store_deadline(all->store);
        rc = lk_rows_read(all->store, &batch, &err);
    }
    if (rc != SQLOCK_EBUSY) {
        pthread_mutex_lock(&poller->mutex);
        report(poller, &batch, rc, &err);
        pthread_mutex_unlock(&poller->mutex);
    } else {
        /* Out of memory, or timed out: read again a little later. */
        poller->not_before_ns = lk_boottime_ns() + AGAIN_NS;
    }
    for (size_t i = 0; i < batch.count; i++)
        lk_slot_drop(batch.items[i].owner);
    free(batch.items);
    pthread_mutex_lock(&poller->mutex);
}

/* Return when the first read is due, CLOCK_MONOTONIC. */
static int64_t first_due(const struct lk_poller *poller)
{
    const struct lk_waiter *waiter;
    int64_t due = LK_NEVER;

    DL_FOREACH2(poller->subscriptions, waiter, subscription.next)
    due = lk_sooner(due, waiter->subscription.due_ns);
    return due;
}

/* Handler: read once if a read is due, and return when the next one is due
 * (CLOCK_BOOTTIME). */
static int64_t look_when_due(void *owner)
{
    struct lk_poller *poller = owner;
    int64_t due;
    int64_t left;

    if (lk_boottime_ns() < poller->not_before_ns)
        return poller->not_before_ns;
    pthread_mutex_lock(&poller->mutex);
    due = first_due(poller);
    if (due <= sqlock_monotonic_ns()) {
        look(poller);
        due = first_due(poller);
    }
    pthread_mutex_unlock(&poller->mutex);
    if (due == LK_NEVER)
        return LK_NEVER;
    left = due - sqlock_monotonic_ns();
    return lk_boottime_ns() + (left > 0 ? left : 0);
}

void lk_poller_init(struct lk_poller *poller, struct lk_slots *all)
{
    memset(poller, 0, sizeof *poller);
    poller->all = all;
    (void)pthread_mutex_init(&poller->mutex, NULL);
    lk_handler_init(&poller->handler, &all->store->background, look_when_due,
                    NULL, poller);
}

/* Return when the waiter is to ask again: where a bell is lacking for now, and
 * where there is a ticket to renew. */
static int64_t asks_at(const struct lk_part *part, enum lk_poll_until until)
{
    int64_t now = sqlock_monotonic_ns();

    if (until == LK_POLL_UNTIL_CHANGED)
        return lk_after_ms(now, BELL_MS);
    return part->slot->ticket[0] == '\0'
               ? LK_NEVER
               : lk_after_ms(now, LK_TICKET_RENEWED_MS);
}

int lk_poller_begin(struct lk_part *part, enum lk_poll_until until,
                    sqlock_error *err)
{
    struct lk_poller *poller = &part->slot->all->poller;
    struct lk_waiter *waiter = part->waiter;
    int rc;

    lk_waiter_prepare(waiter);
    pthread_mutex_lock(&poller->mutex);
    rc = lk_handler_start(&poller->handler, err);
    if (rc == 0) {
        waiter->subscription =
            (struct lk_subscription){.part = part,
                                     .until = until,
                                     .pause_ns = FIRST_PAUSE_NS,
                                     .ends_ns = asks_at(part, until)};
        DL_APPEND2(poller->subscriptions, waiter, subscription.previous,
                   subscription.next);
        poller->count++;
    }
    pthread_mutex_unlock(&poller->mutex);
    if (rc == 0)
        lk_handler_wake(&poller->handler);
    return rc;
}

/* End the subscription.  Return whether the poller had ended it already. */
static bool end(struct lk_poller *poller, struct lk_waiter *waiter)
{
    bool has_ended;

    pthread_mutex_lock(&poller->mutex);
    has_ended = waiter->subscription.part == NULL;
    if (!has_ended)
        unlist(poller, waiter);
    pthread_mutex_unlock(&poller->mutex);
    return has_ended;
}

int lk_poller_await(struct lk_part *part, sqlock_error *err)
{
    const struct lk_store *store = part->slot->store;
    struct lk_waiter *self = part->waiter;
    struct lk_row row;
    bool was_read;
    int rc;

    rc = lk_waiter_park(self, self->deadline_ns, true);
    if (rc != 0)
        return rc;
    was_read = end(&part->slot->all->poller, self);
    if (lk_waiter_is_cancelled(self))
        return lk_canceled(err);
    if (was_read) {
        if (self->subscription.rc < 0 && err != NULL)
            *err = self->subscription.err;
        return self->subscription.rc;
    }
    /* Read once more at the end: the row may have become free. */
    rc = lk_row_read(part->slot->store, part->slot->key,
                     lk_waiter_statement_deadline(self, store), &row, err);
    if (rc == 0 && blocked_ns(part, &row) > 0)
        rc = lk_not_in_time(self->wait_ms, err);
    return rc;
}
