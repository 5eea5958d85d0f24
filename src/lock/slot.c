/*
 * slot.c - hold and release a lock within this process.  No I/O in here.
 */
#include "lock/slot.h"

#include <string.h>
#include <utlist.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/owner.h"
#include "lock/overdue.h"
#include "lock/peers.h"
#include "lock/give_back.h"
#include "lock/turn.h"

bool lk_is_owned_by(const struct lk_slot *slot, uint64_t owner)
{
    return slot->phase == LK_OCCUPIED && slot->owner == owner &&
           !slot->is_left_behind;
}

bool lk_is_granted(const struct lk_slot *slot, uint64_t grant)
{
    return slot->phase == LK_OCCUPIED && slot->grant == grant;
}

int64_t lk_remaining_ns(const struct lk_slot *slot)
{
    int64_t left = slot->lease.deadline_boot_ns - lk_boottime_ns();

    return slot->lost != 0 || left < 0 ? 0 : left;
}

static bool is_one_of(uint64_t wanted, uint64_t owner)
{
    return wanted == 0 || wanted == owner;
}

/* Return whether an acquisition of that owner (0: any) is under way.  The
 * caller holds the mutex. */
static bool is_wanted(const struct lk_slot *slot, uint64_t owner)
{
    const struct lk_part *part;

    DL_FOREACH2(slot->parts, part, next)
    {
        if (is_one_of(owner, part->owner) && !part->waiter->is_abandoned)
            return true;
    }
    return false;
}

/* Return whether that owner (0: any) holds or releases the lock.  The caller
 * holds the mutex. */
static bool is_kept(const struct lk_slot *slot, uint64_t owner)
{
    if (slot->phase == LK_FREE || slot->turn != NULL || slot->is_left_behind ||
        !is_one_of(owner, slot->owner))
        return false;
    return !(lk_is_overdue(slot) && lk_has_ended(slot->owner));
}

void lk_slot_drop_session(struct lk_slot *slot)
{
    if (slot->session != NULL)
        lk_pool_discard(&slot->store->db.waiting, slot->session);
    slot->session = NULL;
}

bool lk_slot_is_in_use(struct lk_slot *slot, uint64_t owner)
{
    bool in_use;

    pthread_mutex_lock(&slot->mutex);
    in_use = is_wanted(slot, owner) || is_kept(slot, owner) ||
             lk_is_missed(slot, owner);
    pthread_mutex_unlock(&slot->mutex);
    return in_use;
}

/* Give the turn to that part; NULL: to none.  The caller holds the mutex. */
static void give_turn(struct lk_slot *slot, struct lk_part *next)
{
    slot->handoffs = 0;
    slot->outage = 0;
    slot->is_left_behind = false;
    slot->phase = next != NULL ? LK_BUSY : LK_FREE;
    slot->turn = next;
    if (next != NULL)
        lk_dequeue(next, LK_PART_TURN, LK_WAKE_TURN);
}

void lk_leave(struct lk_slot *slot)
{
    give_turn(slot, lk_first_queued(slot));
}

void lk_let_all_in(struct lk_slot *slot)
{
    struct lk_part *part;

    DL_FOREACH2(slot->parts, part, next)
    {
        if (part->state == LK_PART_QUEUED)
            lk_dequeue(part, LK_PART_OUTSIDE, LK_WAKE_RETRY);
    }
}

void lk_hold(struct lk_part *part, const struct lk_lease *lease)
{
    struct lk_slot *slot = part->slot;

    part->state = LK_PART_HELD;
    part->grant = ++slot->grant;
    slot->phase = LK_OCCUPIED;
    slot->turn = NULL;
    slot->outage = 0;
    slot->owner = part->owner;
    slot->asked = *part->waiter->options;
    slot->is_left_behind = part->waiter->is_abandoned;
    if (slot->is_left_behind)
        slot->asked.on_lost = NULL;
    slot->hold_count = 1;
    slot->lease = *lease;
    slot->lease.asked_ns = 0;
    /* renewals of an earlier lease do not matter */
    slot->renewals = NULL;
    slot->lost = 0;
    slot->is_to_be_told = slot->asked.on_lost != NULL;
    slot->acquired_boot_ns = lk_boottime_ns();
    if (slot->store->options.ownership == SQLOCK_OWNED_BY_REGISTRY)
        lk_let_all_in(slot);
}

int lk_lose(struct lk_slot *slot, int code)
{
    if (slot->lost == 0)
        lk_count_over(&slot->store->db.stats, slot->key, code);
    slot->lost = code;
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
    lk_count(&part->slot->store->db.stats, LK_COUNT_RELEASED);
    part->lease = overdue->lease;
    part->lost = overdue->lost;
    part->state = LK_RELEASE_ASIDE;
    lk_overdue_end(part->slot, overdue);
}

/* Undo the last acquire of a lease that a transaction guards, so that
 * lk_guard_end() releases it.  Return EINUSE.  The caller holds the mutex. */
static int owe(struct lk_release_part *part, sqlock_error *err)
{
    struct lk_slot *slot = part->slot;

    slot->hold_count = 0;
    slot->is_left_behind = true;
    slot->is_to_be_told = false;
    slot->asked.on_lost = NULL;
    part->grant = slot->grant;
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
    struct lk_slot *slot = part->slot;

    if (slot->hold_count > 1) {
        slot->hold_count--;
        return 0;
    }
    if (slot->guards > 0 && may_owe)
        return owe(part, err);
    if (slot->guards > 0)
        return lk_error(err, SQLOCK_EINUSE,
                        "an open transaction guards this lock: end it first");
    part->lease = slot->lease;
    part->lost = slot->lost;
    part->grant = slot->grant;
    part->state = LK_RELEASE_TURN;
    lk_count_released(&slot->store->db.stats, slot->key,
                      lk_boottime_ns() - slot->acquired_boot_ns);
    slot->phase = LK_BUSY;
    return 0;
}

/* The caller holds the mutex. */
static int begin_release(struct lk_release_part *part,
                         const struct lk_undo *undo, sqlock_error *err)
{
    struct lk_slot *slot = part->slot;
    struct lk_overdue *overdue = undo->grant != 0
                                     ? lk_overdue_by_grant(slot, undo->grant)
                                     : lk_overdue_of(slot, undo->owner);

    if (undo->grant != 0 ? lk_is_granted(slot, undo->grant)
                         : lk_is_owned_by(slot, undo->owner))
        return begin_own(part, undo->may_owe, err);
    if (overdue == NULL)
        return lk_not_owner(err);
    begin_overdue(overdue, part);
    return 0;
}

void lk_begin_release(struct lk_release_part *part, struct lk_slot *slot,
                      const struct lk_undo *undo, sqlock_error *err)
{
    part->slot = slot;
    pthread_mutex_lock(&slot->mutex);
    part->rc = begin_release(part, undo, err);
    part->has_lease = part->state != LK_RELEASE_OVER;
    pthread_mutex_unlock(&slot->mutex);
}

void lk_forget_lease(struct lk_slot *slot)
{
    slot->hold_count = 0;
    slot->lost = 0;
    slot->lease.token = 0;
}

void lk_end_release(struct lk_slot *slot)
{
    pthread_mutex_lock(&slot->mutex);
    lk_forget_lease(slot);
    /* a part chosen for a hand-off that failed is in slot->turn already */
    give_turn(slot, slot->turn != NULL ? slot->turn : lk_first_queued(slot));
    pthread_mutex_unlock(&slot->mutex);
}

/* Choose the next part to hand off to.  Do not hand off a lease that may be
 * over, nor too often in a row: other processes wait as well. */
struct lk_part *lk_begin_hand_off(struct lk_slot *slot)
{
    uint32_t limit = slot->store->options.handoff_limit;
    struct lk_part *next = NULL;

    pthread_mutex_lock(&slot->mutex);
    if (slot->handoffs < limit && !lk_peers_are_due(slot) &&
        lk_remaining_ns(slot) > 0)
        next = lk_first_queued(slot);
    if (next != NULL && !next->may_be_given)
        next = NULL;
    if (next != NULL) {
        next->state = LK_PART_CHOSEN;
        slot->turn = next;
    }
    pthread_mutex_unlock(&slot->mutex);
    return next;
}

void lk_end_hand_off(struct lk_part *next, const struct lk_lease *lease)
{
    struct lk_slot *slot = next->slot;

    pthread_mutex_lock(&slot->mutex);
    lk_count(&slot->store->db.stats, LK_COUNT_HANDED_OFF);
    slot->handoffs++;
    lk_hold(next, lease);
    lk_waiter_wake(next->waiter, LK_WAKE_GRANTED);
    pthread_mutex_unlock(&slot->mutex);
}

void lk_abandon_part(struct lk_part *part)
{
    struct lk_slot *slot = part->slot;
    struct lk_overdue *overdue;

    pthread_mutex_lock(&slot->mutex);
    part->waiter->is_abandoned = true;
    overdue = lk_overdue_by_grant(slot, part->grant);
    if (overdue != NULL)
        overdue->is_left_behind = true;
    if (lk_is_granted(slot, part->grant) && part->state == LK_PART_HELD)
        slot->asked.on_lost = NULL;
    if (lk_is_granted(slot, part->grant) && slot->hold_count == 1)
        slot->is_left_behind = true;
    pthread_mutex_unlock(&slot->mutex);
}

void lk_abandon_release(struct lk_slot *slot, const struct lk_lease *lease)
{
    pthread_mutex_lock(&slot->mutex);
    if (slot->phase == LK_BUSY &&
        strcmp(slot->lease.client_id, lease->client_id) == 0)
        slot->is_left_behind = true;
    pthread_mutex_unlock(&slot->mutex);
}

int lk_begin_renew(struct lk_slot *slot, uint64_t owner, uint32_t ttl_ms,
                   struct lk_renewal *renewal, struct lk_lease *lease,
                   sqlock_error *err)
{
    int rc = 0;

    pthread_mutex_lock(&slot->mutex);
    if (!lk_is_owned_by(slot, owner) && lk_overdue_of(slot, owner) != NULL)
        rc = lk_error(err, lk_overdue_of(slot, owner)->lost,
                      "the lease of this lock is over: release it first");
    else if (!lk_is_owned_by(slot, owner))
        rc = lk_not_owner(err);
    else if (slot->lost == SQLOCK_ELOST)
        rc = lk_error(err, SQLOCK_ELOST, "the lease of this lock is lost");
    else if (lk_remaining_ns(slot) == 0)
        rc = lk_error(err, SQLOCK_EEXPIRED,
                      "the lease expired before it was renewed");
    else if (slot->guards > 0)
        rc =
            lk_error(err, SQLOCK_EBUSY, "an open transaction guards this lock");
    else
        rc = lk_ttl_check(&slot->store->options, &ttl_ms, ttl_ms,
                          slot->lease.ttl_ms, err);
    if (rc == 0) {
        *lease = slot->lease;
        lease->ttl_ms = lk_capped_ms(lease, ttl_ms);
        lk_renewal_begin(slot, renewal, lease->ttl_ms);
    }
    pthread_mutex_unlock(&slot->mutex);
    return rc;
}
