/*
 * kept.c - keep rows while waiting for others, renew them, and give them back
 * (kept.h)
 */
#include "lock/kept.h"

#include "base/clock.h"
#include "lease/bell.h"
#include "lock/acquisition.h"

/* The number of setbacks after which rows are kept. */
#define SETBACKS 3

/* How long rows are kept at first. */
#define FIRST_NS (100 * LK_NS_PER_MS)

/* A kept row is renewed when this part of its TTL is over; after a renewal that
 * failed, it is tried again after a part of that. */
#define RENEWED_PART 3
#define RETRY_PART 24

void lk_kept_set_back(struct lk_acquisition *a)
{
    if (a->count > 1)
        a->kept.setbacks++;
}

bool lk_kept_stays(const struct lk_acquisition *a, const struct lk_part *part,
                   const struct lk_part *waits_for)
{
    return waits_for != NULL && part < waits_for &&
           a->kept.setbacks >= SETBACKS;
}

bool lk_kept_has_more(const struct lk_acquisition *a,
                      const struct lk_part *missing)
{
    for (const struct lk_part *part = a->parts; part < missing; part++)
        if (part->state == LK_PART_TURN && !part->is_kept &&
            lk_kept_stays(a, part, missing))
            return true;
    return false;
}

static int64_t part_of_ttl_ns(const struct lk_acquisition *a, int part)
{
    return (int64_t)a->options.ttl_ms * LK_NS_PER_MS / part;
}

/* Return when the first of the kept leases ends, CLOCK_BOOTTIME; LK_NEVER: none
 * is kept. */
static int64_t first_end(const struct lk_acquisition *a)
{
    int64_t end = LK_NEVER;

    for (size_t i = 0; i < a->count; i++)
        if (a->parts[i].is_kept)
            end = lk_sooner(end, a->parts[i].lease.believed.until_boot_ns);
    return end;
}

int64_t lk_kept_look_ns(const struct lk_acquisition *a)
{
    return first_end(a) == LK_NEVER ? LK_NEVER : a->kept.look_ns;
}

/* Set the time of the next look, which is not before `least_ns` from now. */
static void set_alarm(struct lk_acquisition *a, int64_t least_ns)
{
    int64_t in_ns = first_end(a) - lk_boottime_ns() - part_of_ttl_ns(a, 1) +
                    part_of_ttl_ns(a, RENEWED_PART);

    a->kept.look_ns =
        lk_sooner(a->kept.give_back_ns, lk_after_ns(sqlock_monotonic_ns(),
                                                    lk_later(in_ns, least_ns)));
}

void lk_kept_add(struct lk_acquisition *a, struct lk_part *part)
{
    if (first_end(a) == LK_NEVER) {
        a->kept.longest_ns = lk_later(a->kept.longest_ns, FIRST_NS);
        a->kept.give_back_ns = sqlock_monotonic_ns() + a->kept.longest_ns;
    }
    part->is_kept = true;
    set_alarm(a, 0);
}

void lk_kept_lost(struct lk_acquisition *a, struct lk_part *part)
{
    part->is_kept = false;
    (void)lk_place_end(a->store, &part->lease.answered.place, false, false);
}

/* --- giving back --- */

/* Forget a row that was given back. */
static void forget(struct lk_part *part)
{
    part->is_kept = false;
    part->lease = (struct lk_lease){.believed.fate = LK_CLAIM_ANSWERED};
}

/* Give rows back later, in the background. */
static void owe(struct lk_acquisition *a)
{
    for (size_t i = 0; i < a->batch.count; i++) {
        struct lk_lease *lease = &a->batch.items[i].lease;

        (void)lk_place_end(a->store, &lease->answered.place, false, true);
        lk_resolver_add_release(a->store, lease, lk_boottime_ns());
    }
}

void lk_kept_give_back(struct lk_acquisition *a,
                       const struct lk_part *waits_for, bool is_outage)
{
    struct lk_batch *batch = &a->batch;

    batch->count = 0;
    for (size_t i = 0; i < a->count; i++) {
        struct lk_part *part = &a->parts[i];

        if (!part->is_kept || part == waits_for ||
            lk_kept_stays(a, part, waits_for))
            continue;
        batch->items[batch->count++] =
            (struct lk_item){.lease = part->lease, .owner = part};
        forget(part);
    }
    if (batch->count == 0)
        return;
    batch->deadline_ns = lk_store_deadline(a->store);
    if (is_outage)
        owe(a);
    else
        (void)lk_batch_release(a->store, batch, NULL);
}

/* --- renewing --- */

/* Renew the kept leases.  Return false if one is lost.  Without an answer they
 * stay as they are. */
static bool renew(struct lk_acquisition *a)
{
    struct lk_batch *batch = &a->batch;
    bool is_lost = false;
    int rc;

    batch->count = 0;
    for (size_t i = 0; i < a->count; i++) {
        struct lk_part *part = &a->parts[i];

        if (part->is_kept)
            batch->items[batch->count++] =
                (struct lk_item){.lease = part->lease, .owner = part};
    }
    batch->deadline_ns = lk_store_deadline(a->store);
    rc = lk_batch_renew(a->store, batch, NULL);
    for (size_t i = 0; i < batch->count; i++) {
        const struct lk_item *item = &batch->items[i];
        struct lk_part *part = item->owner;

        part->lease = item->lease;
        is_lost = is_lost || (rc == 0 && (item->rc == SQLOCK_ELOST ||
                                          item->rc == SQLOCK_EEXPIRED));
    }
    set_alarm(a, part_of_ttl_ns(a, RETRY_PART));
    return !is_lost;
}

/* Return whether somebody needs a kept row, and forget it. */
static bool is_to_yield(struct lk_waiter *self)
{
    bool is_asked;

    pthread_mutex_lock(&lk_mutex);
    is_asked = self->is_to_yield;
    self->is_to_yield = false;
    pthread_mutex_unlock(&lk_mutex);
    return is_asked;
}

bool lk_kept_look(struct lk_acquisition *a)
{
    if (is_to_yield(&a->self))
        return false;
    if (sqlock_monotonic_ns() < lk_kept_look_ns(a))
        return true;
    if (sqlock_monotonic_ns() < a->kept.give_back_ns)
        return renew(a);
    a->kept.longest_ns *= 2;
    return false;
}
