/*
 * lookout.c - one statement for all the rows that a process waits for, every so
 * often, and sooner where a lease is about to end.
 *
 * Observing before stealing is for peers whose clocks are not known: an expired
 * row is believed only after it has stayed the same for a TTL on this host's
 * own clock, whatever its time stamp says.
 */
#include "locks/lookout.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <utlist.h>

#include "base/clock.h"
#include "base/random.h"
#include "base/thread.h"
#include "lease/batch.h"
#include "lease/look.h"
#include "locks/registry.h"

void lk_lookout_init(struct lk_lookout *lookout, sqlock_registry *registry)
{
    memset(lookout, 0, sizeof *lookout);
    lookout->registry = registry;
    (void)pthread_mutex_init(&lookout->mutex, NULL);
}

static int64_t pause_ns(const sqlock_registry *registry)
{
    int64_t poll_us = (int64_t)registry->store.options.poll_ms * 1000;

    return lk_random_between(poll_us * 3 / 4, poll_us * 5 / 4) * LK_NS_PER_US;
}

/* Called with the mutex held: the waiter is told, and not looked out for any
 * more. */
static void tell(struct lk_lookout *lookout, struct lk_waiter *waiter, int rc,
                 const sqlock_error *err)
{
    DL_DELETE2(lookout->posts, waiter, post.previous, post.next);
    lookout->count--;
    waiter->post.is_listed = false;
    pthread_mutex_lock(&waiter->mutex);
    waiter->is_told = true;
    waiter->told_rc = rc;
    if (rc < 0)
        waiter->told = *err;
    lk_waiter_wake(waiter);
    pthread_mutex_unlock(&waiter->mutex);
}

/* The keys that are due, or nearly so; sorted, each once.  Called with the mutex
 * held. */
static void gather(struct lk_lookout *lookout, struct lk_batch *batch)
{
    int64_t soon =
        sqlock_monotonic_ns() +
        (int64_t)lookout->registry->store.options.poll_ms * LK_NS_PER_MS / 2;
    struct lk_waiter *waiter;

    batch->items = calloc(lookout->count, sizeof *batch->items);
    if (batch->items == NULL)
        return;
    DL_FOREACH2(lookout->posts, waiter, post.next)
    {
        if (waiter->post.due_ns > soon || batch->count == LK_BATCH_MAX)
            continue;
        /* A lock goes on living without its waiter no longer than that: pinned,
         * its key stays. */
        waiter->post.lock->pins++;
        batch->items[batch->count].owner = waiter->post.lock;
        batch->items[batch->count++].lease.key = waiter->post.lock->key;
    }
    lk_batch_sort(batch);
}

static void unpin(sqlock_registry *registry, const struct lk_batch *batch)
{
    pthread_mutex_lock(&registry->mutex);
    for (size_t i = 0; i < batch->count; i++)
        lk_lock_unpin(registry, batch->items[i].owner);
    pthread_mutex_unlock(&registry->mutex);
}

/* Whether the row has another holder than at the first look. */
static bool has_changed(struct lk_post *post, const struct lk_row *row)
{
    if (!post->tells_change)
        return false;
    if (post->holder[0] == '\0')
        memcpy(post->holder, row->client_id, sizeof post->holder);
    return strcmp(post->holder, row->client_id) != 0;
}

/* Called with the mutex held: what was seen, for each who still waits. */
static void report(struct lk_lookout *lookout, const struct lk_batch *batch,
                   const struct lk_row *rows, int rc, const sqlock_error *err)
{
    struct lk_waiter *waiter;
    struct lk_waiter *next;

    DL_FOREACH_SAFE2(lookout->posts, waiter, next, post.next)
    {
        const struct lk_row *row =
            lk_batch_row(batch, rows, waiter->post.lock->key);
        int64_t left_ns;

        if (row == NULL)
            continue; /* not looked at */
        left_ns = rc < 0 ? 0
                         : lk_look_left_ns(&lookout->registry->store,
                                           &waiter->post.seen, row);
        if (left_ns == 0 || has_changed(&waiter->post, row))
            tell(lookout, waiter, rc, err);
        else
            waiter->post.due_ns =
                sqlock_monotonic_ns() +
                lk_sooner(pause_ns(lookout->registry), left_ns);
    }
}

/* Called with the mutex held, which is let go during the statement. */
static void look(struct lk_lookout *lookout)
{
    sqlock_registry *registry = lookout->registry;
    struct lk_batch batch = {0};
    struct lk_row *rows = NULL;
    sqlock_error err = {0};
    int rc = SQLOCK_EBUSY;

    pthread_mutex_lock(&registry->mutex);
    gather(lookout, &batch);
    pthread_mutex_unlock(&registry->mutex);
    pthread_mutex_unlock(&lookout->mutex);
    if (batch.count > 0)
        rows = calloc(batch.count, sizeof *rows);
    if (rows != NULL) {
        batch.deadline_ns = lk_store_deadline(&registry->store);
        rc = lk_batch_read(&registry->store, &batch, rows, &err);
    }
    if (rc != SQLOCK_EBUSY) {
        pthread_mutex_lock(&lookout->mutex);
        report(lookout, &batch, rows, rc, &err);
        pthread_mutex_unlock(&lookout->mutex);
    } else {
        /* Out of memory, or cut short: look again a little later. */
        lk_sleep_until(sqlock_monotonic_ns() + 10 * LK_NS_PER_MS);
    }
    unpin(registry, &batch);
    free(rows);
    free(batch.items);
    pthread_mutex_lock(&lookout->mutex);
}

/* Called with the mutex held: when the first look is due. */
static int64_t first_due(const struct lk_lookout *lookout)
{
    const struct lk_waiter *waiter;
    int64_t due = LK_NEVER;

    DL_FOREACH2(lookout->posts, waiter, post.next)
    due = lk_sooner(due, waiter->post.due_ns);
    return due;
}

static void *look_out(void *argument)
{
    struct lk_lookout *lookout = argument;

    pthread_mutex_lock(&lookout->mutex);
    while (!lookout->is_stopping) {
        int64_t due = first_due(lookout);
        int64_t left = due - sqlock_monotonic_ns();

        if (due != LK_NEVER && left <= 0) {
            look(lookout);
            continue;
        }
        pthread_mutex_unlock(&lookout->mutex);
        lk_alarm_sleep(&lookout->alarm,
                       due == LK_NEVER ? LK_NEVER : lk_boottime_ns() + left);
        pthread_mutex_lock(&lookout->mutex);
    }
    pthread_mutex_unlock(&lookout->mutex);
    return NULL;
}

/* Called with the mutex held. */
static int start(struct lk_lookout *lookout, sqlock_error *err)
{
    int rc;

    rc = lk_alarm_open(&lookout->alarm, err);
    if (rc < 0)
        return rc;
    rc = lk_thread_start(&lookout->thread, look_out, lookout, err);
    if (rc < 0) {
        lk_alarm_close(&lookout->alarm);
        return rc;
    }
    lookout->is_running = true;
    return 0;
}

void lk_lookout_stop(struct lk_lookout *lookout)
{
    bool was_running;

    pthread_mutex_lock(&lookout->mutex);
    was_running = lookout->is_running;
    lookout->is_running = false;
    lookout->is_stopping = true;
    pthread_mutex_unlock(&lookout->mutex);
    if (was_running) {
        lk_alarm_poke(&lookout->alarm);
        pthread_join(lookout->thread, NULL);
        lk_alarm_close(&lookout->alarm);
    }
}

int lk_lookout_begin(struct lk_lookout *lookout, sqlock_lock *lock,
                     struct lk_waiter *waiter, sqlock_error *err)
{
    int rc = 0;

    pthread_mutex_lock(&waiter->mutex);
    waiter->is_told = false;
    pthread_mutex_unlock(&waiter->mutex);
    pthread_mutex_lock(&lookout->mutex);
    if (!lookout->is_running)
        rc = start(lookout, err);
    if (rc == 0) {
        waiter->post.lock = lock;
        waiter->post.due_ns = 0;
        waiter->post.holder[0] = '\0';
        waiter->post.is_listed = true;
        DL_APPEND2(lookout->posts, waiter, post.previous, post.next);
        lookout->count++;
    }
    pthread_mutex_unlock(&lookout->mutex);
    if (rc == 0)
        lk_alarm_poke(&lookout->alarm);
    return rc;
}

void lk_lookout_end(struct lk_lookout *lookout, struct lk_waiter *waiter)
{
    pthread_mutex_lock(&lookout->mutex);
    if (waiter->post.is_listed) {
        DL_DELETE2(lookout->posts, waiter, post.previous, post.next);
        lookout->count--;
        waiter->post.is_listed = false;
    }
    pthread_mutex_unlock(&lookout->mutex);
}
