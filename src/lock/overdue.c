/*
 * overdue.c - set leases aside that are over and were not released (overdue.h)
 *
 * The holder may have ended, hang, or come back late.  A holder that comes back
 * finds the lease that was set aside, and releases the row by that lease's
 * CLIENT_ID.
 */
#include "lock/overdue.h"

#include <stdlib.h>
#include <utlist.h>

#include "base/clock.h"
#include "base/owner.h"
#include "lease/bell.h"
#include "lock/slot.h"

/* Look again after this time: waiters are not woken when a guard ends, or when
 * a lease without on_lost is lost. */
#define AGAIN_NS (1000 * LK_NS_PER_MS)

bool lk_is_overdue(const struct lk_slot *slot)
{
    return slot->phase == LK_OCCUPIED && slot->guards == 0 &&
           slot->store->options.ownership != SQLOCK_OWNED_BY_REGISTRY &&
           lk_remaining_ns(slot) == 0 && !slot->is_to_be_told;
}

int64_t lk_overdue_at(const struct lk_slot *slot)
{
    int64_t left_ns = AGAIN_NS;

    if (slot->phase == LK_OCCUPIED && lk_remaining_ns(slot) > 0)
        left_ns = lk_sooner(left_ns, lk_remaining_ns(slot));
    return sqlock_monotonic_ns() + left_ns;
}

bool lk_set_aside(struct lk_slot *slot)
{
    struct lk_overdue *overdue = calloc(1, sizeof *overdue);

    if (overdue == NULL)
        return false;
    overdue->owner = slot->owner;
    overdue->grant = slot->grant;
    overdue->hold_count = slot->hold_count;
    overdue->is_left_behind = slot->is_left_behind;
    overdue->lost =
        slot->lost != 0 ? slot->lost : lk_lose(slot, SQLOCK_EEXPIRED);
    overdue->lease = slot->lease;
    slot->place_aside = overdue->lease.place;
    overdue->lease.place = (struct lk_place){0};
    LL_PREPEND(slot->overdue, overdue);
    slot->is_aside = true;
    slot->phase = LK_FREE;
    slot->handoffs = 0;
    lk_forget_lease(slot);
    return true;
}

void lk_clear_aside(struct lk_slot *slot)
{
    struct lk_place place;

    if (!slot->is_aside)
        return;
    slot->is_aside = false;
    place = slot->place_aside;
    (void)lk_place_end(slot->store, &place, false, false);
}

struct lk_overdue *lk_overdue_of(const struct lk_slot *slot, uint64_t owner)
{
    struct lk_overdue *overdue;

    LL_FOREACH(slot->overdue, overdue)
    {
        if (overdue->owner == owner && !overdue->is_left_behind)
            return overdue;
    }
    return NULL;
}

struct lk_overdue *lk_overdue_by_grant(const struct lk_slot *slot,
                                       uint64_t grant)
{
    struct lk_overdue *overdue;

    LL_SEARCH_SCALAR(slot->overdue, overdue, grant, grant);
    return overdue;
}

void lk_overdue_end(struct lk_slot *slot, struct lk_overdue *overdue)
{
    LL_DELETE(slot->overdue, overdue);
    free(overdue);
}

bool lk_is_missed(const struct lk_slot *slot, uint64_t owner)
{
    const struct lk_overdue *overdue;

    LL_FOREACH(slot->overdue, overdue)
    {
        if ((owner == 0 || overdue->owner == owner) &&
            !overdue->is_left_behind && !lk_has_ended(overdue->owner))
            return true;
    }
    return false;
}
