/*
 * overdue.c - set leases aside that are over and were not released (overdue.h)
 *
 * The holder may have ended, hang, or come back late.  A holder that comes back
 * finds the lease that was set aside, and releases the row by that lease's
 * CLIENT_ID.
 */
#include "wait/overdue.h"

#include <stdlib.h>
#include <utlist.h>

#include "base/clock.h"
#include "base/owner.h"
#include "lease/bell.h"
#include "wait/entry.h"

/* Look again after this time: waiters are not woken when a guard ends, or when
 * a lease without on_lost is lost. */
#define AGAIN_NS (1000 * LK_NS_PER_MS)

bool lk_is_overdue(const struct lk_entry *entry)
{
    return entry->phase == LK_OCCUPIED && entry->guards == 0 &&
           entry->store->options.ownership != SQLOCK_OWNED_BY_REGISTRY &&
           lk_remaining_ns(entry) == 0 && !entry->is_to_be_told;
}

int64_t lk_overdue_at(const struct lk_entry *entry)
{
    int64_t left_ns = AGAIN_NS;

    if (entry->phase == LK_OCCUPIED && lk_remaining_ns(entry) > 0)
        left_ns = lk_sooner(left_ns, lk_remaining_ns(entry));
    return sqlock_monotonic_ns() + left_ns;
}

bool lk_set_aside(struct lk_entry *entry)
{
    struct lk_overdue *overdue = calloc(1, sizeof *overdue);

    if (overdue == NULL)
        return false;
    overdue->owner = entry->owner;
    overdue->grant = entry->grant;
    overdue->hold_count = entry->hold_count;
    overdue->is_left_behind = entry->is_left_behind;
    overdue->lost =
        entry->lost != 0 ? entry->lost : lk_lose(entry, SQLOCK_EEXPIRED);
    overdue->lease = entry->lease;
    entry->place_aside = overdue->lease.place;
    overdue->lease.place = (struct lk_place){0};
    LL_PREPEND(entry->overdue, overdue);
    entry->is_aside = true;
    entry->phase = LK_FREE;
    entry->handoffs = 0;
    lk_forget_lease(entry);
    return true;
}

void lk_clear_aside(struct lk_entry *entry)
{
    struct lk_place place;

    if (!entry->is_aside)
        return;
    entry->is_aside = false;
    place = entry->place_aside;
    (void)lk_place_end(entry->store, &place, false, false);
}

struct lk_overdue *lk_overdue_of(const struct lk_entry *entry, uint64_t owner)
{
    struct lk_overdue *overdue;

    LL_FOREACH(entry->overdue, overdue)
    {
        if (overdue->owner == owner && !overdue->is_left_behind)
            return overdue;
    }
    return NULL;
}

struct lk_overdue *lk_overdue_by_grant(const struct lk_entry *entry,
                                       uint64_t grant)
{
    struct lk_overdue *overdue;

    LL_SEARCH_SCALAR(entry->overdue, overdue, grant, grant);
    return overdue;
}

void lk_overdue_end(struct lk_entry *entry, struct lk_overdue *overdue)
{
    LL_DELETE(entry->overdue, overdue);
    free(overdue);
}

bool lk_is_missed(const struct lk_entry *entry, uint64_t owner)
{
    const struct lk_overdue *overdue;

    LL_FOREACH(entry->overdue, overdue)
    {
        if ((owner == 0 || overdue->owner == owner) &&
            !overdue->is_left_behind && !lk_has_ended(overdue->owner))
            return true;
    }
    return false;
}
