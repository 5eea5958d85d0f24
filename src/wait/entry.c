/*
 * entry.c - hold and release a lock within this process.  No I/O in here.
 */
#include "wait/entry.h"

#include <string.h>
#include <utlist.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/owner.h"
#include "wait/overdue.h"
#include "wait/peers.h"
#include "wait/release.h"
#include "wait/turn.h"

bool lk_is_owned_by(const struct lk_entry *entry, uint64_t owner)
{
    return entry->phase == LK_OCCUPIED && entry->owner == owner &&
           !entry->is_left_behind;
}

bool lk_is_granted(const struct lk_entry *entry, uint64_t grant)
{
    return entry->phase == LK_OCCUPIED && entry->grant == grant;
}

int64_t lk_remaining_ns(const struct lk_entry *entry)
{
    int64_t left = entry->lease.deadline_boot_ns - lk_boottime_ns();

    return entry->lost != 0 || left < 0 ? 0 : left;
}

static bool is_one_of(uint64_t wanted, uint64_t owner)
{
    return wanted == 0 || wanted == owner;
}

/* Return whether an acquisition of that owner (0: any) is under way.  The
 * caller holds the mutex. */
static bool is_wanted(const struct lk_entry *entry, uint64_t owner)
{
    const struct lk_part *part;

    DL_FOREACH2(entry->parts, part, next)
    {
        if (is_one_of(owner, part->owner) && !part->waiter->is_abandoned)
            return true;
    }
    return false;
}

/* Return whether that owner (0: any) holds or releases the lock.  The caller
 * holds the mutex. */
static bool is_kept(const struct lk_entry *entry, uint64_t owner)
{
    if (entry->phase == LK_FREE || entry->turn != NULL ||
        entry->is_left_behind || !is_one_of(owner, entry->owner))
        return false;
    return !(lk_is_overdue(entry) && lk_has_ended(entry->owner));
}

void lk_entry_drop_session(struct lk_entry *entry)
{
    if (entry->session != NULL)
        lk_pool_discard(&entry->store->db.waiting, entry->session);
    entry->session = NULL;
}

bool lk_entry_is_in_use(struct lk_entry *entry, uint64_t owner)
{
    bool in_use;

    pthread_mutex_lock(&entry->mutex);
    in_use = is_wanted(entry, owner) || is_kept(entry, owner) ||
             lk_is_missed(entry, owner);
    pthread_mutex_unlock(&entry->mutex);
    return in_use;
}

/* Give the turn to that part; NULL: to none.  The caller holds the mutex. */
static void give_turn(struct lk_entry *entry, struct lk_part *next)
{
    entry->handoffs = 0;
    entry->outage = 0;
    entry->is_left_behind = false;
    entry->phase = next != NULL ? LK_BUSY : LK_FREE;
    entry->turn = next;
    if (next != NULL)
        lk_dequeue(next, LK_PART_TURN, LK_WAKE_TURN);
}

void lk_leave(struct lk_entry *entry)
{
    give_turn(entry, lk_first_queued(entry));
}

void lk_let_all_in(struct lk_entry *entry)
{
    struct lk_part *part;

    DL_FOREACH2(entry->parts, part, next)
    {
        if (part->state == LK_PART_QUEUED)
            lk_dequeue(part, LK_PART_OUTSIDE, LK_WAKE_RETRY);
    }
}

void lk_hold(struct lk_part *part, const struct lk_lease *lease)
{
    struct lk_entry *entry = part->entry;

    part->state = LK_PART_HELD;
    part->grant = ++entry->grant;
    entry->phase = LK_OCCUPIED;
    entry->turn = NULL;
    entry->outage = 0;
    entry->owner = part->owner;
    entry->asked = *part->waiter->options;
    entry->is_left_behind = part->waiter->is_abandoned;
    if (entry->is_left_behind)
        entry->asked.on_lost = NULL;
    entry->hold_count = 1;
    entry->lease = *lease;
    entry->lease.asked_ns = 0;
    /* renewals of an earlier lease do not matter */
    entry->renewals = NULL;
    entry->lost = 0;
    entry->is_to_be_told = entry->asked.on_lost != NULL;
    entry->acquired_boot_ns = lk_boottime_ns();
    if (entry->store->options.ownership == SQLOCK_OWNED_BY_REGISTRY)
        lk_let_all_in(entry);
}

int lk_lose(struct lk_entry *entry, int code)
{
    if (entry->lost == 0)
        lk_count_over(&entry->store->db.stats, entry->key, code);
    entry->lost = code;
    return code;
}

int lk_not_owner(sqlock_error *err)
{
    return lk_error(err, SQLOCK_EOWNER, "the caller does not own this lock");
}

/* Undo one acquire of a lease that was set aside; the last one begins the
 * release.  The caller holds the mutex. */
static void begin_overdue(struct lk_overdue *overdue,
                          struct lk_release_part *part)
{
    part->grant = overdue->grant;
    if (--overdue->hold_count > 0)
        return;
    lk_count(&part->entry->store->db.stats, LK_COUNT_RELEASED);
    part->lease = overdue->lease;
    part->lost = overdue->lost;
    part->state = LK_RELEASE_ASIDE;
    lk_overdue_end(part->entry, overdue);
}

/* Undo the last acquire of a lease that a transaction guards, so that
 * lk_guard_end() releases it.  Return EINUSE.  The caller holds the mutex. */
static int owe(struct lk_release_part *part, sqlock_error *err)
{
    struct lk_entry *entry = part->entry;

    entry->hold_count = 0;
    entry->is_left_behind = true;
    entry->is_to_be_told = false;
    entry->asked.on_lost = NULL;
    part->grant = entry->grant;
    part->is_owed = true;
    return lk_error(err, SQLOCK_EINUSE,
                    "an open transaction guards this lock, which is released "
                    "when that ends");
}

/* Undo one acquire of the present lease; the last one begins the release.
 * Return 0 or EINUSE.  The caller holds the mutex. */
static int begin_own(struct lk_release_part *part, bool may_owe,
                     sqlock_error *err)
{
    struct lk_entry *entry = part->entry;

    if (entry->hold_count > 1) {
        entry->hold_count--;
        return 0;
    }
    if (entry->guards > 0 && may_owe)
        return owe(part, err);
    if (entry->guards > 0)
        return lk_error(err, SQLOCK_EINUSE,
                        "an open transaction guards this lock: end it first");
    part->lease = entry->lease;
    part->lost = entry->lost;
    part->grant = entry->grant;
    part->state = LK_RELEASE_TURN;
    lk_count_released(&entry->store->db.stats, entry->key,
                      lk_boottime_ns() - entry->acquired_boot_ns);
    entry->phase = LK_BUSY;
    return 0;
}

/* The caller holds the mutex. */
static int begin_release(struct lk_release_part *part,
                         const struct lk_undo *undo, sqlock_error *err)
{
    struct lk_entry *entry = part->entry;
    struct lk_overdue *overdue = undo->grant != 0
                                     ? lk_overdue_by_grant(entry, undo->grant)
                                     : lk_overdue_of(entry, undo->owner);

    if (undo->grant != 0 ? lk_is_granted(entry, undo->grant)
                         : lk_is_owned_by(entry, undo->owner))
        return begin_own(part, undo->may_owe, err);
    if (overdue == NULL)
        return lk_not_owner(err);
    begin_overdue(overdue, part);
    return 0;
}

void lk_begin_release(struct lk_release_part *part, struct lk_entry *entry,
                      const struct lk_undo *undo, sqlock_error *err)
{
    part->entry = entry;
    pthread_mutex_lock(&entry->mutex);
    part->rc = begin_release(part, undo, err);
    part->has_lease = part->state != LK_RELEASE_OVER;
    pthread_mutex_unlock(&entry->mutex);
}

void lk_forget_lease(struct lk_entry *entry)
{
    entry->hold_count = 0;
    entry->lost = 0;
    entry->lease.token = 0;
}

void lk_end_release(struct lk_entry *entry)
{
    pthread_mutex_lock(&entry->mutex);
    lk_forget_lease(entry);
    /* a part chosen for a hand-off that failed is in entry->turn already */
    give_turn(entry,
              entry->turn != NULL ? entry->turn : lk_first_queued(entry));
    pthread_mutex_unlock(&entry->mutex);
}

/* Choose the next part to hand off to.  Do not hand off a lease that may be
 * over, nor too often in a row: other processes wait as well. */
struct lk_part *lk_begin_hand_off(struct lk_entry *entry)
{
    uint32_t limit = entry->store->options.handoff_limit;
    struct lk_part *next = NULL;

    pthread_mutex_lock(&entry->mutex);
    if (entry->handoffs < limit && !lk_peers_are_due(entry) &&
        lk_remaining_ns(entry) > 0)
        next = lk_first_queued(entry);
    if (next != NULL && !next->may_be_given)
        next = NULL;
    if (next != NULL) {
        next->state = LK_PART_CHOSEN;
        entry->turn = next;
    }
    pthread_mutex_unlock(&entry->mutex);
    return next;
}

void lk_end_hand_off(struct lk_part *next, const struct lk_lease *lease)
{
    struct lk_entry *entry = next->entry;

    pthread_mutex_lock(&entry->mutex);
    lk_count(&entry->store->db.stats, LK_COUNT_HANDED_OFF);
    entry->handoffs++;
    lk_hold(next, lease);
    lk_waiter_wake(next->waiter, LK_WAKE_GRANTED);
    pthread_mutex_unlock(&entry->mutex);
}

void lk_abandon_part(struct lk_part *part)
{
    struct lk_entry *entry = part->entry;
    struct lk_overdue *overdue;

    pthread_mutex_lock(&entry->mutex);
    part->waiter->is_abandoned = true;
    overdue = lk_overdue_by_grant(entry, part->grant);
    if (overdue != NULL)
        overdue->is_left_behind = true;
    if (lk_is_granted(entry, part->grant) && part->state == LK_PART_HELD)
        entry->asked.on_lost = NULL;
    if (lk_is_granted(entry, part->grant) && entry->hold_count == 1)
        entry->is_left_behind = true;
    pthread_mutex_unlock(&entry->mutex);
}

void lk_abandon_release(struct lk_entry *entry, const struct lk_lease *lease)
{
    pthread_mutex_lock(&entry->mutex);
    if (entry->phase == LK_BUSY &&
        strcmp(entry->lease.client_id, lease->client_id) == 0)
        entry->is_left_behind = true;
    pthread_mutex_unlock(&entry->mutex);
}

int lk_begin_renew(struct lk_entry *entry, uint64_t owner, uint32_t ttl_ms,
                   struct lk_renewal *renewal, struct lk_lease *lease,
                   sqlock_error *err)
{
    int rc = 0;

    pthread_mutex_lock(&entry->mutex);
    if (!lk_is_owned_by(entry, owner) && lk_overdue_of(entry, owner) != NULL)
        rc = lk_error(err, lk_overdue_of(entry, owner)->lost,
                      "the lease of this lock is over: release it first");
    else if (!lk_is_owned_by(entry, owner))
        rc = lk_not_owner(err);
    else if (entry->lost == SQLOCK_ELOST)
        rc = lk_error(err, SQLOCK_ELOST, "the lease of this lock is lost");
    else if (lk_remaining_ns(entry) == 0)
        rc = lk_error(err, SQLOCK_EEXPIRED,
                      "the lease expired before it was renewed");
    else if (entry->guards > 0)
        rc =
            lk_error(err, SQLOCK_EBUSY, "an open transaction guards this lock");
    else
        rc = lk_ttl_check(&entry->store->options, &ttl_ms, ttl_ms,
                          entry->lease.ttl_ms, err);
    if (rc == 0) {
        *lease = entry->lease;
        lease->ttl_ms = lk_capped_ms(lease, ttl_ms);
        lk_renewal_begin(entry, renewal, lease->ttl_ms);
    }
    pthread_mutex_unlock(&entry->mutex);
    return rc;
}
