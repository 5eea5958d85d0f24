/*
 * poller.c - one statement for all the rows that a process waits for, every so
 * often, and sooner where a lease is about to end.
 *
 * Observing before stealing is for peers whose clocks are not known: an expired
 * row is believed only after it has stayed the same for a TTL on this host's
 * own clock, whatever its time stamp says.
 */
#include "wait/poller.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/clock.h"
#include "base/random.h"
#include "lease/batch.h"
#include "lease/observe.h"
#include "wait/entry.h"

/* Before the next look where one came to nothing. */
#define AGAIN_NS (10 * LK_NS_PER_MS)

static int64_t pause_ns(const struct lk_entries *all)
{
    int64_t poll_us = (int64_t)all->store->options.poll_ms * 1000;

    return lk_random_between(poll_us * 3 / 4, poll_us * 5 / 4) * LK_NS_PER_US;
}

/* Called with the mutex held. */
static void unlist(struct lk_poller *poller, struct lk_waiter *waiter)
{
    DL_DELETE2(poller->subscriptions, waiter, subscription.previous,
               subscription.next);
    poller->count--;
    waiter->subscription.entry = NULL;
}

/* Called with the mutex held: the waiter is woken with that result, and its row
 * is not read any more. */
static void wake(struct lk_poller *poller, struct lk_waiter *waiter, int rc,
                 const sqlock_error *err)
{
    unlist(poller, waiter);
    waiter->row_rc = rc;
    if (rc < 0)
        waiter->row_err = *err;
    lk_waiter_wake(waiter, LK_WAKE_ROW);
}

/* The keys that are due, or nearly so; sorted, each once.  Called with the
 * mutex held. */
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
        if (waiter->subscription.due_ns > soon || batch->count == LK_BATCH_MAX)
            continue;
        /* The reference keeps the entry, and its key, when the waiter goes. */
        waiter->subscription.entry->references++;
        batch->items[batch->count].owner = waiter->subscription.entry;
        batch->items[batch->count++].lease.key =
            waiter->subscription.entry->key;
    }
    lk_batch_sort(batch);
}

static void let_go(const struct lk_batch *batch)
{
    for (size_t i = 0; i < batch->count; i++)
        lk_entry_drop(batch->items[i].owner);
}

/* Whether the row has another holder than at the first look. */
static bool has_changed(struct lk_subscription *subscription,
                        const struct lk_row *row)
{
    if (subscription->until != LK_POLL_UNTIL_CHANGED)
        return false;
    if (subscription->holder[0] == '\0')
        memcpy(subscription->holder, row->client_id,
               sizeof subscription->holder);
    return strcmp(subscription->holder, row->client_id) != 0;
}

/* Called with the mutex held: what was seen, for each who still waits. */
static void report(struct lk_poller *poller, const struct lk_batch *batch,
                   const struct lk_row *rows, int rc, const sqlock_error *err)
{
    struct lk_waiter *waiter;
    struct lk_waiter *next;

    DL_FOREACH_SAFE2(poller->subscriptions, waiter, next, subscription.next)
    {
        const struct lk_row *row =
            lk_row_of(batch, rows, waiter->subscription.entry->key);
        int64_t left_ns;

        if (row == NULL)
            continue; /* not looked at */
        left_ns = rc < 0 ? 0
                         : lk_row_blocked_ns(poller->all->store,
                                             waiter->subscription.seen, row);
        if (left_ns == 0 || has_changed(&waiter->subscription, row))
            wake(poller, waiter, rc, err);
        else
            waiter->subscription.due_ns =
                sqlock_monotonic_ns() +
                lk_sooner(pause_ns(poller->all), left_ns);
    }
}

/* Called with the mutex held, which is let go during the statement. */
static void look(struct lk_poller *poller)
{
    struct lk_entries *all = poller->all;
    struct lk_batch batch = {0};
    struct lk_row *rows = NULL;
    sqlock_error err = {0};
    int rc = SQLOCK_EBUSY;

    pthread_mutex_lock(&all->mutex);
    gather(poller, &batch);
    pthread_mutex_unlock(&all->mutex);
    pthread_mutex_unlock(&poller->mutex);
    if (batch.count > 0)
        rows = calloc(batch.count, sizeof *rows);
    if (rows != NULL) {
        batch.deadline_ns = lk_store_deadline(all->store);
        rc = lk_rows_read(all->store, &batch, rows, &err);
    }
    if (rc != SQLOCK_EBUSY) {
        pthread_mutex_lock(&poller->mutex);
        report(poller, &batch, rows, rc, &err);
        pthread_mutex_unlock(&poller->mutex);
    } else {
        /* Out of memory, or cut short: look again a little later. */
        poller->not_before_ns = lk_boottime_ns() + AGAIN_NS;
    }
    let_go(&batch);
    free(rows);
    free(batch.items);
    pthread_mutex_lock(&poller->mutex);
}

/* Called with the mutex held: when the first look is due. */
static int64_t first_due(const struct lk_poller *poller)
{
    const struct lk_waiter *waiter;
    int64_t due = LK_NEVER;

    DL_FOREACH2(poller->subscriptions, waiter, subscription.next)
    due = lk_sooner(due, waiter->subscription.due_ns);
    return due;
}

/* The handler: one look, or none, and when the next one is due. */
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

void lk_poller_init(struct lk_poller *poller, struct lk_entries *all)
{
    memset(poller, 0, sizeof *poller);
    poller->all = all;
    (void)pthread_mutex_init(&poller->mutex, NULL);
    lk_handler_init(&poller->handler, &all->store->background, look_when_due,
                    NULL, poller);
}

void lk_poller_stop(struct lk_poller *poller)
{
    lk_handler_stop(&poller->handler);
}

int lk_poller_begin(struct lk_poller *poller, struct lk_entry *entry,
                    struct lk_waiter *waiter, enum lk_poll_until until,
                    struct lk_observed *seen, sqlock_error *err)
{
    int rc;

    lk_waiter_prepare(waiter);
    pthread_mutex_lock(&poller->mutex);
    rc = lk_handler_start(&poller->handler, err);
    if (rc == 0) {
        waiter->subscription = (struct lk_subscription){
            .entry = entry, .until = until, .seen = seen};
        DL_APPEND2(poller->subscriptions, waiter, subscription.previous,
                   subscription.next);
        poller->count++;
    }
    pthread_mutex_unlock(&poller->mutex);
    if (rc == 0)
        lk_handler_wake(&poller->handler);
    return rc;
}

void lk_poller_end(struct lk_poller *poller, struct lk_waiter *waiter)
{
    pthread_mutex_lock(&poller->mutex);
    if (waiter->subscription.entry != NULL)
        unlist(poller, waiter);
    pthread_mutex_unlock(&poller->mutex);
}
