/*
 * acquisition.c - see acquisition.h
 *
 * A thread goes through an acquisition in one go, asleep where there is nothing
 * to do; a request leaves it there, suspended, and goes on later.  While the
 * database is away, both make attempt after attempt (patience.c).
 */
#include "wait/acquisition.h"

#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "wait/overdue.h"
#include "wait/peers.h"
#include "wait/wait.h"

/* After one that met others who wait, or overtook them, so many acquisitions go
 * to their queue first: a releaser does not overtake those it has just
 * woken. */
#define QUEUE_FIRST 16

/* Before the first claim: what is known to be taken is waited for. */
static int wait_first(struct lk_acquisition *a, sqlock_error *err)
{
    struct lk_entry *entry = a->entry;
    int rc = 0;

    if (entry->store->options.observe_before_steal)
        return lk_wait_for_row(entry, &a->self, err);
    /* Peers have their chance while others of ours wait behind this one. */
    if ((entry->queue_first > 0 || lk_peers_are_due(entry)) &&
        a->self.wait_ms != 0 && lk_queue_is_there(&a->wait)) {
        if (entry->queue_first > 0)
            entry->queue_first--;
        rc = lk_queue_await(&a->wait, err);
        if (rc == 0 && !a->wait.has_turn) {
            entry->is_queue_stalled = true;
            entry->queue_first = 0;
        }
    }
    return rc;
}

/* Who overtook others who wait goes behind them the next time; not behind one
 * who has the queue lock for other reasons. */
static void note_contention(const struct lk_acquisition *a)
{
    struct lk_entry *entry = a->entry;

    if (!a->lease.is_contended)
        entry->is_queue_stalled = false;
    else if (!a->wait.has_turn && !entry->is_queue_stalled)
        entry->queue_first = QUEUE_FIRST;
}

/* Where nobody waits for the thread, or none at all, peers get their chance
 * from the others. */
static bool may_pause(const struct lk_acquisition *a)
{
    return a->self.wait_ms != 0 && !a->self.may_not_block;
}

static int claim_in_turn(struct lk_acquisition *a, sqlock_error *err)
{
    struct lk_entry *entry = a->entry;
    struct lk_waiter *self = &a->self;
    bool was_refused = false;
    int rc = self->is_polling ? lk_wait_for_row(entry, self, err)
                              : wait_first(a, err);

    while (rc == 0) {
        lk_peers_note(entry, &self->subscription.seen);
        if (self->wait_ms != 0 && lk_waiter_is_cancelled(self))
            return lk_canceled(err);
        if (may_pause(a) && lk_peers_are_due(entry)) {
            rc = lk_peers_wait(entry, self, err);
            if (rc < 0)
                return rc;
        }
        rc = lk_lease_claim(entry->store, &a->lease, err);
        if (rc == 0) {
            note_contention(a);
            lk_peers_granted(entry, &a->lease, was_refused);
        }
        if (rc != SQLOCK_EBUSY || self->wait_ms == 0)
            return rc;
        lk_patience_end(&a->patience, entry);
        was_refused = true;
        lk_queue_refused(&a->wait);
        entry->queue_first = QUEUE_FIRST;
        /* A row that a transaction keeps locked may look free all the time. */
        if (sqlock_monotonic_ns() >= self->deadline_ns)
            return lk_not_in_time(self->wait_ms, err);
        rc = lk_queue_await(&a->wait, err);
    }
    return rc;
}

/* The options of this call in `complete`, its TTL filled in. */
int lk_check_acquire(const struct lk_store *store, int64_t wait_ms,
                     const sqlock_acquire_options *options,
                     sqlock_acquire_options *complete, sqlock_error *err)
{
    memset(complete, 0, sizeof *complete);
    if (wait_ms < SQLOCK_FOREVER)
        return lk_error(err, SQLOCK_EINVAL,
                        "wait_ms is %lld: use 0, a time in ms, or "
                        "SQLOCK_FOREVER",
                        (long long)wait_ms);
    if (options != NULL) {
        if (options->size < sizeof options->size ||
            options->size > sizeof *options)
            return lk_error(err, SQLOCK_EINVAL,
                            "sqlock_acquire_options.size is %zu: begin with "
                            "SQLOCK_ACQUIRE_INIT",
                            options->size);
        memcpy(complete, options, options->size);
    }
    return lk_ttl_check(&store->options, &complete->ttl_ms, complete->ttl_ms,
                        store->options.ttl_ms, err);
}

/* Attempt by attempt while the database is away, as long as the caller
 * waits. */
static int claim_patiently(struct lk_acquisition *a, sqlock_error *err)
{
    for (;;) {
        int rc = lk_patience_await(&a->self, err);

        if (rc == 0)
            rc = claim_in_turn(a, err);
        if (rc == LK_SUSPENDED)
            return rc;
        lk_queue_finish(&a->wait, &a->lease.place, rc);
        if (!lk_patience_pause(&a->patience, a->entry, &a->self, rc))
            return lk_patience_result(&a->self, &a->lease, rc, err);
        lk_queue_begin(&a->wait, a->entry, &a->self);
    }
}

/* The lock's phase is LK_BUSY, for the caller: take the row. */
static int take(struct lk_acquisition *a, sqlock_error *err)
{
    struct lk_entry *entry = a->entry;
    int rc;

    if (!a->has_turn) { /* it begins */
        a->has_turn = true;
        lk_clear_aside(entry);
        a->lease = (struct lk_lease){
            .key = entry->key,
            .name = entry->name,
            .ttl_ms = a->options.ttl_ms,
            .is_left_free = entry->is_left_free,
            .asked_ns = a->self.asked_ns,
        };
        if (entry->store->options.observe_before_steal)
            a->lease.observed = &a->self.subscription.seen;
        lk_queue_begin(&a->wait, entry, &a->self);
    }
    rc = claim_patiently(a, err);
    if (rc == LK_SUSPENDED)
        return rc;

    a->has_turn = false;
    if (a->lease.is_in_doubt)
        lk_resolver_add_claim(entry->store, &a->lease, lk_boottime_ns());
    entry->is_left_free = false;
    pthread_mutex_lock(&entry->mutex);
    if (rc == 0)
        a->self.grant = lk_hold(entry, &a->lease, &a->options, a->self.owner);
    else
        lk_leave(entry);
    pthread_mutex_unlock(&entry->mutex);
    return rc;
}

int lk_acquisition_begin(struct lk_acquisition *a, struct lk_entry *entry,
                         uint64_t owner, int64_t wait_ms,
                         const sqlock_acquire_options *options,
                         sqlock_error *err)
{
    int rc;

    memset(a, 0, sizeof *a);
    rc = lk_check_acquire(entry->store, wait_ms, options, &a->options, err);
    if (rc < 0)
        return rc;
    a->entry = entry;
    lk_waiter_init(&a->self, wait_ms, &a->options);
    a->self.owner = owner;
    return 0;
}

int lk_acquisition_enter(struct lk_acquisition *a, sqlock_error *err)
{
    int rc = lk_canceller_watch(&a->entry->all->canceller, &a->self,
                                a->options.cancel_fd, err);

    return rc < 0 ? rc : lk_enter(a->entry, &a->self, err);
}

/* rc as lk_enter() and lk_enter_on() give it. */
int lk_acquisition_go_on(struct lk_acquisition *a, int rc, sqlock_error *err)
{
    if (rc < 0)
        return rc;
    if (rc == LK_ENTRY_AGAIN)
        return 0;
    if (rc == LK_ENTRY_SUSPENDED)
        return LK_SUSPENDED;
    return rc == LK_ENTRY_CLAIM ? take(a, err) : 0;
}

void lk_acquisition_end(struct lk_acquisition *a)
{
    lk_canceller_forget(&a->entry->all->canceller, &a->self);
    lk_waiter_clear(&a->self);
}
