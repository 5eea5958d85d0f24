/*
 * part.c - the states of a slot's parts, and how one becomes a holder (part.h)
 */
#include "lock/part.h"

#include <assert.h>
#include <utlist.h>

#include "base/clock.h"
#include "lease/sharer.h"
#include "lock/hold.h"

/* The states that may follow each state. */
#define TO(state) (1U << (state))
static const unsigned followers[] = {
    [LK_PART_OUTSIDE] = TO(LK_PART_OUTSIDE) | TO(LK_PART_QUEUED) |
                        TO(LK_PART_TURN) | TO(LK_PART_NESTED) |
                        TO(LK_PART_HELD),
    [LK_PART_QUEUED] = TO(LK_PART_OUTSIDE) | TO(LK_PART_CHOSEN) |
                       TO(LK_PART_TURN) | TO(LK_PART_HELD),
    [LK_PART_CHOSEN] = TO(LK_PART_TURN) | TO(LK_PART_HELD),
    [LK_PART_TURN] = TO(LK_PART_OUTSIDE) | TO(LK_PART_HELD),
    [LK_PART_NESTED] = TO(LK_PART_OUTSIDE),
    [LK_PART_HELD] = 0,
};

void lk_part_go_to(struct lk_part *part, enum lk_part_state state)
{
    assert(followers[part->state] & TO(state));
    part->state = state;
}

void lk_part_list(struct lk_part *part)
{
    DL_APPEND2(part->slot->parts, part, previous, next);
    part->is_listed = true;
}

void lk_part_unlist(struct lk_part *part)
{
    if (part->is_listed)
        DL_DELETE2(part->slot->parts, part, previous, next);
    part->is_listed = false;
}

struct lk_part *lk_first_queued(const struct lk_slot *slot)
{
    struct lk_part *part;

    DL_FOREACH2(slot->parts, part, next)
    {
        if (part->state == LK_PART_QUEUED && !part->waiter->is_cancelled)
            return part;
    }
    return NULL;
}

void lk_wake_in_time(const struct lk_slot *slot)
{
    struct lk_part *first = lk_first_queued(slot);

    if (first == NULL || first->looks_boot_ns <= lk_overdue_at(slot))
        return;
    first->looks_boot_ns = 0;
    lk_waiter_wake(first->waiter, LK_WAKE_LOOK);
}

void lk_part_dequeue(struct lk_part *part, enum lk_part_state state,
                     enum lk_wake_reason reason)
{
    lk_part_go_to(part, state);
    lk_waiter_wake(part->waiter, reason);
}

void lk_part_retry(struct lk_part *part)
{
    lk_part_dequeue(part, LK_PART_OUTSIDE, LK_WAKE_RETRY);
}

void lk_let_all_in(struct lk_slot *slot)
{
    struct lk_part *part;

    DL_FOREACH2(slot->parts, part, next)
    {
        if (part->state == LK_PART_QUEUED)
            lk_part_retry(part);
    }
}

void lk_part_holds(struct lk_part *part, const struct lk_lease *lease)
{
    struct lk_slot *slot = part->slot;

    if (part->state == LK_PART_CHOSEN)
        slot->handoffs++;
    if (part->state == LK_PART_CHOSEN || part->state == LK_PART_QUEUED)
        lk_waiter_wake(part->waiter, LK_WAKE_GRANTED);
    lk_part_go_to(part, LK_PART_HELD);
    slot->turn = NULL;
    slot->outage = 0;
    lk_hold_begin(part, lease);
}

/* --- readers of this process, which share a share --- */

/* Return whether the hold is one whose share a reader may join. */
static bool is_open(const struct lk_hold *hold)
{
    return hold->state == LK_HOLD_HELD && hold->lease.asked.weight == 1 &&
           hold->lease.asked.permits == LK_NO_LIMIT && !hold->is_left_behind &&
           !hold->is_closed && lk_remaining_ns(hold) > 0;
}

/* Return whether what is left of the lease is enough for the part: a holder
 * that asked for a TTL gets most of it. */
static bool lasts(const struct lk_hold *hold, const struct lk_part *part)
{
    const sqlock_acquire_options *wanted = part->waiter->options;
    int64_t now_ns = lk_boottime_ns();
    int64_t all_ns =
        lk_believe_until(part->slot->store, now_ns, wanted->ttl_ms) - now_ns;

    return lk_remaining_ns(hold) >=
           (wanted->auto_renew ? all_ns / 2 : all_ns - all_ns / 8);
}

const struct lk_hold *lk_joinable(const struct lk_part *part)
{
    const struct lk_slot *slot = part->slot;
    const struct lk_hold *best = NULL;
    const struct lk_hold *hold;

    if (!part->may_join || slot->is_asked || slot->joined >= LK_HANDOFFS_MAX)
        return NULL;
    DL_FOREACH(slot->holds, hold)
    {
        if (is_open(hold) &&
            (best == NULL || hold->lease.believed.until_boot_ns >
                                 best->lease.believed.until_boot_ns))
            best = hold;
    }
    return best != NULL && lasts(best, part) ? best : NULL;
}

bool lk_join(struct lk_part *part)
{
    const struct lk_hold *hold = lk_joinable(part);
    struct lk_slot *slot = part->slot;
    struct lk_lease lease;

    if (hold == NULL)
        return false;
    lease = hold->lease;
    lease.answered.place = (struct lk_place){0};
    lease.asked.ttl_ms = lk_capped_ms(&lease, part->waiter->options->ttl_ms);
    lease.believed.until_boot_ns = lk_sooner(
        lease.believed.until_boot_ns,
        lk_believe_until(slot->store, lk_boottime_ns(), lease.asked.ttl_ms));
    slot->joined++;
    part->asks = slot->joined == LK_HANDOFFS_MAX;
    slot->is_asked = part->asks;
    lk_part_holds(part, &lease);
    return true;
}
