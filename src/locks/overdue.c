/*
 * overdue.c - see overdue.h
 *
 * The holder may have ended, or hang, or come back late: then it finds what was
 * set aside for it, and is told the truth by the release of its own CLIENT_ID.
 */
#include "locks/overdue.h"

#include <stdlib.h>
#include <utlist.h>

#include "base/clock.h"
#include "lease/queue.h"
#include "locks/entry.h"

/* Nobody says when a guard ends, or that the signal has been given. */
#define AGAIN_NS (1000 * LK_NS_PER_MS)

static bool has_been_told(const sqlock_lock *lock)
{
    return lock->is_told || (lock->on_lost == NULL && lock->lost_fd < 0);
}

bool lk_is_overdue(const sqlock_lock *lock)
{
    return lock->phase == LK_OCCUPIED && lock->guards == 0 &&
           lock->store->options.ownership == SQLOCK_OWNED_BY_THREAD &&
           lk_remaining_ns(lock) == 0 && has_been_told(lock);
}

int64_t lk_overdue_at(const sqlock_lock *lock)
{
    int64_t left_ns = AGAIN_NS;

    if (lock->phase == LK_OCCUPIED && lk_remaining_ns(lock) > 0)
        left_ns = lk_sooner(left_ns, lk_remaining_ns(lock));
    return sqlock_monotonic_ns() + left_ns;
}

bool lk_set_aside(sqlock_lock *lock)
{
    struct lk_overdue *overdue = calloc(1, sizeof *overdue);

    if (overdue == NULL)
        return false;
    overdue->owner = lock->owner;
    overdue->hold_count = lock->hold_count;
    overdue->is_left_behind = lock->is_left_behind;
    overdue->lost = lock->lost != 0 ? lock->lost : SQLOCK_EEXPIRED;
    lk_copy_lease(lock, &overdue->lease);
    lock->place_aside = overdue->lease.place;
    overdue->lease.place = (struct lk_place){0};
    LL_PREPEND(lock->overdue, overdue);
    lock->is_aside = true;
    lock->phase = LK_FREE;
    lock->hold_count = 0;
    lock->handoffs = 0;
    lock->lost = 0;
    lock->token = 0;
    return true;
}

void lk_clear_aside(sqlock_lock *lock)
{
    struct lk_place place;

    if (!lock->is_aside)
        return;
    lock->is_aside = false;
    place = lock->place_aside;
    lk_end_care(lock);
    (void)lk_queue_end(lock->store, lock->key, &place, false, false);
}

struct lk_overdue *lk_overdue_of(const sqlock_lock *lock, uint64_t owner)
{
    struct lk_overdue *overdue;

    LL_SEARCH_SCALAR(lock->overdue, overdue, owner, owner);
    return overdue;
}

void lk_overdue_end(sqlock_lock *lock, struct lk_overdue *overdue)
{
    LL_DELETE(lock->overdue, overdue);
    free(overdue);
}

bool lk_is_missed(const sqlock_lock *lock)
{
    const struct lk_overdue *overdue;

    LL_FOREACH(lock->overdue, overdue)
    {
        if (!overdue->is_left_behind && !lk_has_ended(overdue->owner))
            return true;
    }
    return false;
}
