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
#include "lock/deadlock.h"
#include "lock/peers.h"
#include "lock/registry.h"
#include "lock/seen.h"

/* Pause after a read that failed. */
#define AGAIN_NS (10 * LK_NS_PER_MS)

/* Longest pause before the first read for a part that is behind another. */
#define BEHIND_MS 50

/* Where a bell is lacking for now: half the first pause, and when to look for
 * the bell again. */
#define FIRST_PAUSE_NS (LK_NS_PER_MS / 2)
#define BELL_MS 5000

/* Mean time between two reads within which the reservation of a row, of
 * LK_RESERVED_MS, is seen. */
#define RESERVED_US 600000

/* Return the pause between two reads of a part that hears the one before it.
 * It has looked before the row is reserved for it, if those before it do not
 * come: each of them has a second. */
static int64_t beside_ns(const struct lk_part *part)
{
    static const int64_t pauses_ms[] = {RESERVED_US / 1000, 1000, 1000, 2000,
                                        3000};
    static const int last = sizeof pauses_ms / sizeof *pauses_ms - 1;
    int place = part->slot->place;

    return pauses_ms[place < last ? place : last] * LK_NS_PER_MS;
}

/* Return the longest pause between two reads for a part.  Those who are next
 * read most often, and the others less often, but often enough to see that the
 * row is reserved for them. */
static int64_t longest_ns(const struct lk_part *part, const struct lk_row *row)
{
    int64_t poll_us = (int64_t)part->slot->store->options.poll_ms * 1000;
    int64_t times = row->rounds > 0 ? row->rounds : 1;
    int64_t longest_us = lk_later(poll_us, RESERVED_US);

    poll_us = lk_sooner(poll_us * times, longest_us);
    return lk_random_between(poll_us * 3 / 4, poll_us * 5 / 4) * LK_NS_PER_US;
}

/* Return how long the part is not to claim the row. */
static int64_t blocked_ns(struct lk_part *part, const struct lk_row *row)
{
    int64_t left_ns = lk_peers_look(part->slot, row);
    bool is_ours = row->is_taken && part->slot->ticket[0] != '\0' &&
                   strcmp(row->client_id, part->slot->ticket) == 0;

    return is_ours || lk_peers_may_try(part->slot) ? 0 : left_ns;
}

/* The caller of the static functions before look() holds the mutex. */

/* Remove a subscription. */
static void unlist(struct lk_poller *poller, struct lk_part *part)
{
    DL_DELETE2(poller->subscribers, part, polled.previous, polled.next);
    poller->count--;
    part->polled.is_listed = false;
}

/* End the subscription, and wake the waiter with that result. */
static void wake(struct lk_poller *poller, struct lk_part *part, int rc,
                 const sqlock_error *err)
{
    unlist(poller, part);
    part->polled.rc = rc;
    if (rc < 0)
        part->polled.err = *err;
    lk_waiter_wake(part->waiter, LK_WAKE_ROW);
}

/* Collect the keys that are due, or nearly due, sorted.  Out of memory: the
 * batch stays empty. */
static void gather(struct lk_poller *poller, struct lk_batch *batch)
{
    int64_t soon =
        sqlock_monotonic_ns() +
        (int64_t)poller->registry->store.options.poll_ms * LK_NS_PER_MS / 2;
    struct lk_part *part;

    batch->items = calloc(poller->count, sizeof *batch->items);
    if (batch->items == NULL)
        return;
    DL_FOREACH2(poller->subscribers, part, polled.next)
    {
        struct lk_slot *slot = part->slot;

        if (part->polled.due_ns > soon || batch->count == LK_BATCH_MAX)
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

/* Return whether the part may join those who share the lock, or was called, the
 * row has a different holder than when it was first read, or it is time to look
 * for its bell, or to renew the ticket. */
static bool has_changed(const struct lk_store *store,
                        struct lk_subscription *polled,
                        const struct lk_row *row)
{
    if (sqlock_monotonic_ns() >= polled->ends_ns || row->is_called ||
        (row->is_shared && row->rounds == 0))
        return true;
    /* lk_peers_look() follows the turns of services. */
    if (polled->until != LK_POLL_UNTIL_CHANGED || !row->is_taken ||
        lk_row_is_of_peer(store, row))
        return false;
    if (polled->holder[0] == '\0')
        memcpy(polled->holder, row->client_id, sizeof polled->holder);
    return strcmp(polled->holder, row->client_id) != 0;
}

/* Set the time of the next read.  Where a bell is only lacking for now, the
 * first pauses are short. */
static void put_off(struct lk_part *part, const struct lk_row *row,
                    int64_t left_ns)
{
    struct lk_subscription *polled = &part->polled;
    int64_t pause_ns = polled->until == LK_POLL_BESIDE_BELL
                           ? beside_ns(part)
                           : longest_ns(part, row);

    if (polled->until == LK_POLL_UNTIL_CHANGED) {
        pause_ns = lk_sooner(pause_ns, 2 * polled->pause_ns);
        polled->pause_ns = pause_ns;
    }
    pause_ns = lk_sooner(pause_ns, lk_peers_pause_ns(part->slot));
    polled->due_ns = sqlock_monotonic_ns() + lk_sooner(pause_ns, left_ns);
}

/* Return whether the row is as the part wants it, and otherwise in *left_ns for
 * how long it is not.  One that was deleted by hand is nobody's for a time, and
 * then the part comes back. */
static bool is_as_wanted(struct lk_part *part, const struct lk_row *row,
                         int64_t *left_ns)
{
    struct lk_slot *slot = part->slot;

    if (row->exists && row->place >= 0)
        slot->place = row->place;
    *left_ns = blocked_ns(part, row);
    lk_seen_note(slot, row);
    if (slot->gone_ns == 0)
        return *left_ns == 0 || has_changed(slot->store, &part->polled, row);
    *left_ns = lk_seen_left_ns(slot);
    return *left_ns == 0;
}

/* Wake the waiters whose rows are as wanted or could not be read, and set the
 * next read of the others. */
static void report(struct lk_poller *poller, const struct lk_batch *batch,
                   int rc, const sqlock_error *err)
{
    struct lk_part *part;
    struct lk_part *next;

    DL_FOREACH_SAFE2(poller->subscribers, part, next, polled.next)
    {
        const struct lk_row *row = lk_row_of(batch, part->slot->key);
        int64_t left_ns;

        if (row == NULL)
            continue; /* the row was not among those read */
        if (rc < 0 || is_as_wanted(part, row, &left_ns))
            wake(poller, part, rc, err);
        else
            put_off(part, row, left_ns);
    }
}

/* Return when the first read is due, CLOCK_MONOTONIC. */
static int64_t first_due(const struct lk_poller *poller)
{
    const struct lk_part *part;
    int64_t due = LK_NEVER;

    DL_FOREACH2(poller->subscribers, part, polled.next)
    due = lk_sooner(due, part->polled.due_ns);
    return due;
}

/* Read the due rows and report them.  The mutex is released during the
 * statement. */
static void look(struct lk_poller *poller)
{
    struct lk_store *store = &poller->registry->store;
    struct lk_batch batch = {0};
    sqlock_error err = {0};
    int rc = SQLOCK_EBUSY;

    gather(poller, &batch);
    pthread_mutex_unlock(&lk_mutex);
    if (batch.count > 0) {
        batch.deadline_ns = lk_store_deadline(store);
        rc = lk_rows_read(store, &batch, &err);
    }
    /* Out of memory, or timed out: read again a little later. */
    if (rc == SQLOCK_EBUSY)
        poller->not_before_ns = lk_boottime_ns() + AGAIN_NS;
    pthread_mutex_lock(&lk_mutex);
    if (rc != SQLOCK_EBUSY)
        report(poller, &batch, rc, &err);
    for (size_t i = 0; i < batch.count; i++)
        lk_slot_drop(batch.items[i].owner);
    free(batch.items);
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
    pthread_mutex_lock(&lk_mutex);
    due = first_due(poller);
    if (due <= sqlock_monotonic_ns()) {
        look(poller);
        due = first_due(poller);
    }
    pthread_mutex_unlock(&lk_mutex);
    if (due == LK_NEVER)
        return LK_NEVER;
    left = due - sqlock_monotonic_ns();
    return lk_boottime_ns() + (left > 0 ? left : 0);
}

void lk_poller_init(struct lk_poller *poller, sqlock_registry *registry)
{
    memset(poller, 0, sizeof *poller);
    poller->registry = registry;
    lk_handler_init(&poller->handler, &registry->store.background,
                    look_when_due, NULL, poller);
}

/* Return when to look first.  Where services come and go, at any time: else
 * each attempt could come at the same moment of a service's turn, just too
 * late.  Behind another ticket after a pause: its claim was refused just now,
 * also of a free row, which is for those before it.  Otherwise at once. */
static int64_t looks_at(const struct lk_part *part, enum lk_poll_until until)
{
    int64_t pause_ns = lk_peers_pause_ns(part->slot);
    int64_t poll_ms = part->slot->store->options.poll_ms;
    int64_t now = sqlock_monotonic_ns();

    if (until == LK_POLL_BESIDE_BELL)
        return lk_after_ns(now, beside_ns(part));
    if (pause_ns != LK_NEVER)
        return lk_after_ns(now, lk_random_between(0, pause_ns));
    return part->slot->place > 0
               ? lk_after_ms(now, lk_sooner(BEHIND_MS, poll_ms))
               : 0;
}

/* Return when the waiter is to ask again: where a bell is lacking for now, and
 * where there is a ticket to renew. */
static int64_t asks_at(const struct lk_part *part, enum lk_poll_until until)
{
    int64_t now = sqlock_monotonic_ns();
    int64_t until_ns = lk_peers_until_ns(part->slot);

    if (until == LK_POLL_UNTIL_CHANGED)
        return lk_sooner(until_ns, lk_after_ms(now, BELL_MS));
    return part->slot->ticket[0] == '\0' || until == LK_POLL_BESIDE_BELL
               ? LK_NEVER
               : lk_sooner(until_ns, lk_after_ms(now, LK_TICKET_RENEWED_MS));
}

int lk_poller_begin(struct lk_part *part, enum lk_poll_until until,
                    int64_t look_ns, sqlock_error *err)
{
    struct lk_poller *poller = &part->slot->registry->poller;
    int rc = lk_handler_start(&poller->handler, err);

    if (rc < 0)
        return rc;
    pthread_mutex_lock(&lk_mutex);
    if (until != LK_POLL_BESIDE_BELL)
        part->waiter->reason = LK_WAKE_NONE;
    part->polled = (struct lk_subscription){
        .is_listed = true,
        .until = until,
        .due_ns = looks_at(part, until),
        .pause_ns = FIRST_PAUSE_NS,
        .ends_ns = lk_sooner(look_ns, asks_at(part, until))};
    DL_APPEND2(poller->subscribers, part, polled.previous, polled.next);
    poller->count++;
    pthread_mutex_unlock(&lk_mutex);
    lk_handler_wake(&poller->handler);
    return 0;
}

int lk_poller_await(struct lk_part *part, sqlock_error *err)
{
    struct lk_slot *slot = part->slot;
    struct lk_waiter *self = part->waiter;
    int stop = 0;
    bool was_read;
    int rc;

    pthread_mutex_lock(&lk_mutex);
    rc = lk_waiter_park(self, self->deadline_ns, true);
    if (self->is_cancelled)
        stop = lk_canceled(err);
    else if (self->is_deadlocked)
        stop = lk_deadlock(part, err);
    was_read = !part->polled.is_listed;
    if (rc == 0 && !was_read)
        unlist(&slot->registry->poller, part);
    pthread_mutex_unlock(&lk_mutex);
    if (rc != 0)
        return rc;
    if (stop < 0 || !was_read)
        return stop;
    if (part->polled.rc < 0 && err != NULL)
        *err = part->polled.err;
    return part->polled.rc;
}

void lk_poller_end(struct lk_part *part)
{
    pthread_mutex_lock(&lk_mutex);
    if (part->polled.is_listed)
        unlist(&part->slot->registry->poller, part);
    pthread_mutex_unlock(&lk_mutex);
}
