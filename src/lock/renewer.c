/*
 * renewer.c - renew, in the background, all leases of a registry whose
 * acquisitions asked for that, in one statement per period, on a connection of
 * its own
 *
 * The renewer continues through errors until the deadlines (F5), and never
 * declares a lease lost because an answer is missing: the expiry does that, at
 * the deadline.
 */
#include "lock/renewer.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/clock.h"
#include "base/owner.h"
#include "lease/batch.h"
#include "lease/longest.h"
#include "lock/hold.h"
#include "lock/part.h"
#include "lock/registry.h"

/* A renewal that failed or was passed over is tried again after the period
 * divided by this, so that two full attempts fit before any deadline. */
#define RETRY_PART 8

/* Pause after a renewal that failed for lack of memory. */
#define RETRY_NS (10 * LK_NS_PER_MS)

/* Return by how much the database's clock may step without an effect on the
 * lease: its holder stops that much before it ends. */
static int64_t bears_us(const struct lk_hold *hold)
{
    return INT64_C(1000) *
           lk_margin_ms(&hold->slot->store->options, lk_shortest_ttl_ms(hold));
}

/* Return what all leases bear that are renewed. */
static int64_t all_bear_us(struct lk_renewer *renewer)
{
    int64_t least_us = INT64_MAX;
    struct lk_hold *hold;

    pthread_mutex_lock(&lk_mutex);
    DL_FOREACH2(renewer->renewing, hold, renewing.next)
    {
        if (bears_us(hold) < least_us)
            least_us = bears_us(hold);
    }
    pthread_mutex_unlock(&lk_mutex);
    return least_us;
}

/* Mark the leases that do not bear the step as lost, except those that were
 * acquired with the option `fenced`. */
static void give_up_unfenced(struct lk_renewer *renewer, int64_t step_us)
{
    struct lk_hold *hold;

    pthread_mutex_lock(&lk_mutex);
    DL_FOREACH2(renewer->renewing, hold, renewing.next)
    {
        if (hold->asked.fenced || hold->lost != 0 || step_us <= bears_us(hold))
            continue;
        (void)lk_lose(hold, SQLOCK_ELOST); /* the expiry tells */
    }
    pthread_mutex_unlock(&lk_mutex);
}

static int64_t period_ns(const sqlock_registry *registry, uint32_t ttl_ms)
{
    uint32_t period_ms = registry->store.options.renew_period_ms;

    if (period_ms == 0 || period_ms > ttl_ms / 3)
        period_ms = ttl_ms / 4;
    return (int64_t)period_ms * LK_NS_PER_MS;
}

/* The caller of the functions down to gather() holds the mutex. */

/* Return when a lease is due for renewal: a period after the last renewal, but
 * not too soon after a failed one.  A renewal for a shorter TTL that is under
 * way has brought the deadline forward already. */
static int64_t due_at(const struct lk_hold *hold)
{
    const struct lk_store *store = hold->slot->store;
    uint32_t ttl_ms = lk_shortest_ttl_ms(hold);
    int64_t began = hold->lease.believed.until_boot_ns -
                    ((int64_t)ttl_ms - lk_margin_ms(&store->options, ttl_ms)) *
                        LK_NS_PER_MS;
    int64_t period = period_ns(hold->slot->registry, ttl_ms);
    int64_t due = began + period;
    int64_t again = hold->renewing.tried_ns + period / RETRY_PART;

    return due > again ? due : again;
}

static bool may_be_renewed(const struct lk_hold *hold, int64_t now)
{
    /* A lease whose owner is a thread that has ended would never be
     * released. */
    if (hold->state != LK_HOLD_HELD || hold->guards > 0 ||
        hold->is_downgrading || lk_remaining_ns(hold) == 0 ||
        lk_has_ended(hold->owner))
        return false;
    return hold->asked.max_hold_ms == 0 ||
           now < lk_after_ms(hold->acquired_boot_ns, hold->asked.max_hold_ms);
}

/* Put the lease into the batch. */
static void add_item(struct lk_batch *batch, struct lk_hold *hold)
{
    struct lk_item *item = &batch->items[batch->count++];

    *item = (struct lk_item){.lease = hold->lease, .owner = hold};
    lk_renewal_begin(hold, &hold->renewing.renewal, hold->lease.asked.ttl_ms);
    item->lease.asked.ttl_ms = hold->renewing.renewal.row_ttl_ms;
}

/* Return whether the batch has the share of the hold for another reader, whose
 * renewal is that of all. */
static bool is_in(const struct lk_batch *batch, const struct lk_hold *hold)
{
    for (size_t i = 0; lk_is_share(hold) && i < batch->count; i++)
        if (lk_is_same_lease(batch->items[i].owner, hold))
            return true;
    return false;
}

/* The most shares of a batch.  Each is a statement of its own, and those of a
 * batch have the time to answer of one. */
#define SHARES_MAX 16u

/* Return when the first lease is due of the shares, or of the others.  With
 * is_now, also put those that are due within half a period into the batch. */
static int64_t collect(struct lk_renewer *renewer, struct lk_batch *batch,
                       bool are_shares, bool is_now)
{
    size_t most = are_shares ? SHARES_MAX : LK_BATCH_MAX;
    int64_t now = lk_boottime_ns();
    int64_t soonest = LK_NEVER;
    struct lk_hold *hold;

    DL_FOREACH2(renewer->renewing, hold, renewing.next)
    {
        int64_t due;
        int64_t slack;

        if (lk_is_share(hold) != are_shares || !may_be_renewed(hold, now))
            continue;
        due = due_at(hold);
        slack = period_ns(renewer->registry, lk_shortest_ttl_ms(hold)) / 2;
        soonest = lk_sooner(soonest, due);
        if (is_now && due <= now + slack && batch->count < most &&
            !is_in(batch, hold))
            add_item(batch, hold);
    }
    return soonest;
}

/* If a lease is due, collect it and all leases due within half a period into a
 * batch, so that leases acquired soon after one another share a statement; but
 * shares, which wait for locked rows, only when no other lease is due.  Return
 * when the first lease is due. */
static int64_t gather(struct lk_renewer *renewer, struct lk_batch *batch)
{
    int64_t alone = collect(renewer, batch, false, false);
    int64_t soonest = lk_sooner(alone, collect(renewer, batch, true, false));
    int64_t now = lk_boottime_ns();

    if (soonest > now)
        return soonest;
    batch->items =
        calloc(renewer->count < LK_BATCH_MAX ? renewer->count : LK_BATCH_MAX,
               sizeof *batch->items);
    if (batch->items != NULL)
        (void)collect(renewer, batch, alone > now, true);
    return soonest;
}

/* A renewal has at least the TTL divided by this for its answer, however short
 * the period is: the connection cannot be used after a timeout (F5). */
#define ANSWER_PART 8

/* Return the shortest TTL of those that a batch renews, or, of shares, whose
 * statements may wait for locked rows, of all that wait meanwhile.  Its period,
 * margin and time to answer are right for all, because they grow with the
 * TTL. */
static uint32_t shortest_ttl_ms(const struct lk_renewer *renewer,
                                const struct lk_batch *batch)
{
    bool are_shares = false;
    uint32_t shortest = UINT32_MAX;
    const struct lk_hold *hold;

    pthread_mutex_lock(&lk_mutex);
    for (size_t i = 0; i < batch->count; i++) {
        hold = batch->items[i].owner;
        are_shares = are_shares || lk_is_share(hold);
        if (lk_shortest_ttl_ms(hold) < shortest)
            shortest = lk_shortest_ttl_ms(hold);
    }
    DL_FOREACH2(renewer->renewing, hold, renewing.next)
    {
        if (are_shares && lk_shortest_ttl_ms(hold) < shortest)
            shortest = lk_shortest_ttl_ms(hold);
    }
    pthread_mutex_unlock(&lk_mutex);
    return shortest;
}

static int64_t time_to_answer(const sqlock_registry *registry, uint32_t ttl_ms)
{
    int64_t least = (int64_t)ttl_ms * LK_NS_PER_MS / ANSWER_PART;
    int64_t half_period = period_ns(registry, ttl_ms) / 2;

    return least > half_period ? least : half_period;
}

/* Let a renewal, which came to rc, be that of all readers of its share whose
 * leases are renewed. */
static void apply_to_others(const struct lk_hold *hold,
                            const struct lk_lease *lease, int rc,
                            int64_t sent_boot_ns, int64_t now_ns)
{
    struct lk_hold *other;

    DL_FOREACH(hold->slot->holds, other)
    {
        if (other == hold || !other->renewing.is_listed ||
            !lk_is_same_lease(other, hold) || !may_be_renewed(other, now_ns))
            continue;
        other->renewing.tried_ns = now_ns;
        lk_renewal_ride(other, &hold->renewing.renewal, lease, rc,
                        sent_boot_ns);
    }
}

/* Let a lease, which may not be renewed for its TTL, be renewed for what leases
 * may have now, with all who share it.  The next renewal lowers its deadline
 * when it begins. */
static void shorten(struct lk_hold *hold)
{
    struct lk_hold *each;

    DL_FOREACH(hold->slot->holds, each)
    {
        if (each == hold || lk_is_same_lease(each, hold))
            each->lease.asked.ttl_ms =
                lk_longest_allowed(hold->slot->store, each->lease.asked.ttl_ms);
    }
}

/* Apply the results to the holds, and let the others have their turn first the
 * next time, with those to which it did not come; shares at once, if all the
 * time was spent on rows that are locked.  The whole batch came to rc. */
static void apply(struct lk_renewer *renewer, struct lk_batch *batch, int rc)
{
    int64_t now_ns = lk_boottime_ns();

    pthread_mutex_lock(&lk_mutex);
    for (size_t i = 0; i < batch->count; i++) {
        struct lk_item *item = &batch->items[i];
        struct lk_hold *hold = item->owner;

        if (!item->is_left_out || !lk_is_share(hold) || lk_is_outage(item->rc))
            hold->renewing.tried_ns = now_ns;
        if (hold->renewing.is_listed && !item->is_left_out) {
            DL_DELETE2(renewer->renewing, hold, renewing.previous,
                       renewing.next);
            DL_APPEND2(renewer->renewing, hold, renewing.previous,
                       renewing.next);
        }
        apply_to_others(hold, &item->lease, item->rc, batch->sent_boot_ns,
                        now_ns);
        if (rc == SQLOCK_EINVAL || item->rc == SQLOCK_EINVAL)
            shorten(hold);
        (void)lk_renewal_end(hold, &hold->renewing.renewal, &item->lease,
                             item->rc, batch->sent_boot_ns);
    }
    pthread_mutex_unlock(&lk_mutex);
    lk_batch_end_bells(&renewer->registry->store, batch, false, false);
}

/* Report a step of the database's clock.  After a step forward give up the
 * leases that are not fenced, because leases expire by that clock: another
 * owner may have had the lock.  After a step back rows last longer than their
 * holders believe.  A step of no more than a lease's margin has no effect on
 * it.  All leases are judged, not only those of the batch that has shown the
 * step: the next one will not show it again. */
static void report_step(struct lk_renewer *renewer, int64_t step_us)
{
    int64_t borne_us = all_bear_us(renewer);

    if (step_us <= borne_us && step_us >= -borne_us)
        return;
    lk_store_tell(&renewer->registry->store,
                  &(sqlock_event){.kind = SQLOCK_EVENT_CLOCK_STEP},
                  "the database's clock stepped by %lld ms against this "
                  "host's%s",
                  (long long)(step_us / 1000),
                  step_us > 0 ? "; leases with a smaller margin that are not "
                                "fenced count as lost"
                              : "; leases last longer");
    if (step_us > 0)
        give_up_unfenced(renewer, step_us);
}

/* Return the first lease that the database refused to renew, although it can be
 * reached; or NULL. */
static struct lk_item *refused(const struct lk_batch *batch, int rc)
{
    if (rc < 0)
        return batch->count == 1 && !lk_is_outage(rc) ? &batch->items[0] : NULL;
    for (size_t i = 0; i < batch->count; i++) {
        const struct lk_item *item = &batch->items[i];

        if (item->rc < 0 && !lk_is_outage(item->rc) && !item->is_left_out &&
            item->rc != SQLOCK_ELOST && item->rc != SQLOCK_EEXPIRED &&
            item->rc != SQLOCK_EBUSY)
            return &batch->items[i];
    }
    return NULL;
}

/* Return the outage that some leases of a batch met that was sent in parts; 0:
 * none has. */
static int outage_of(const struct lk_batch *batch)
{
    for (size_t i = 0; i < batch->count; i++)
        if (lk_is_outage(batch->items[i].rc))
            return batch->items[i].rc;
    return 0;
}

/* Report why renewals fail, once until all succeed: the loss that may follow
 * says only that the time was over. */
static void report_failure(struct lk_renewer *renewer,
                           const struct lk_batch *batch, int rc,
                           const sqlock_error *err)
{
    const struct lk_store *store = &renewer->registry->store;
    const struct lk_item *item = refused(batch, rc);
    const struct lk_hold *hold = item != NULL ? item->owner : NULL;
    bool is_new = !renewer->is_failing;

    renewer->is_failing = rc < 0 || item != NULL;
    if (!renewer->is_failing || !is_new)
        return;
    if (hold == NULL)
        lk_store_tell(
            store,
            &(sqlock_event){.kind = SQLOCK_EVENT_NOT_RENEWED, .code = rc},
            "leases could not be renewed: %s", err->message);
    else
        lk_store_tell(store,
                      &(sqlock_event){.kind = SQLOCK_EVENT_NOT_RENEWED,
                                      .lock = hold->slot->name,
                                      .key = hold->slot->key,
                                      .token = item->lease.answered.token,
                                      .code = rc < 0 ? rc : item->rc},
                      "the lease of %s could not be renewed: %s",
                      hold->slot->name, err->message);
}

static void renew(struct lk_renewer *renewer, struct lk_batch *batch)
{
    sqlock_registry *registry = renewer->registry;
    sqlock_error err = {0};
    int64_t step_us = 0;
    int rc;

    batch->is_reserved = true;
    batch->latest_ns =
        sqlock_monotonic_ns() +
        time_to_answer(registry, shortest_ttl_ms(renewer, batch));
    batch->deadline_ns =
        lk_sooner(lk_store_deadline(&registry->store), batch->latest_ns);
    lk_batch_sort_parts(batch);
    rc = lk_batch_renew(&registry->store, batch, &err);
    report_failure(renewer, batch, rc < 0 ? rc : outage_of(batch), &err);
    apply(renewer, batch, rc);
    if (rc == 0 && batch->now_us != 0)
        step_us =
            lk_dbclock_observe(&renewer->clock, batch->now_us,
                               batch->sent_boot_ns, batch->answered_boot_ns);
    if (step_us != 0)
        report_step(renewer, step_us);
    lk_handler_wake(&registry->expiry.handler);
}

/* Run by the service: renew the leases that are due, and return when the next
 * is due. */
static int64_t renew_due(void *owner)
{
    struct lk_renewer *renewer = owner;
    struct lk_batch batch = {0};
    int64_t now = lk_boottime_ns();
    int64_t next;

    if (now < renewer->not_before_ns)
        return renewer->not_before_ns;
    pthread_mutex_lock(&lk_mutex);
    next = gather(renewer, &batch);
    pthread_mutex_unlock(&lk_mutex);
    if (batch.count > 0) {
        renew(renewer, &batch);
        next = 0; /* run again: some leases may not have fit in */
    } else if (next <= now) {
        renewer->not_before_ns = now + RETRY_NS;
        next = renewer->not_before_ns;
    }
    free(batch.items);
    return next;
}

void lk_renewer_init(struct lk_renewer *renewer, sqlock_registry *registry)
{
    memset(renewer, 0, sizeof *renewer);
    renewer->registry = registry;
    lk_service_init(&renewer->service);
    lk_handler_init(&renewer->handler, &renewer->service, renew_due, NULL,
                    renewer);
}

void lk_renewer_add(struct lk_renewer *renewer, struct lk_hold *hold)
{
    if (hold->renewing.is_listed)
        return;
    DL_APPEND2(renewer->renewing, hold, renewing.previous, renewing.next);
    hold->renewing.is_listed = true;
    renewer->count++;
}

void lk_renewer_remove(struct lk_renewer *renewer, struct lk_hold *hold)
{
    if (!hold->renewing.is_listed)
        return;
    DL_DELETE2(renewer->renewing, hold, renewing.previous, renewing.next);
    hold->renewing.is_listed = false;
    renewer->count--;
}
