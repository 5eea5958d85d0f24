/*
 * turn.c - the FIFO of a slot: enter it, wait for the turn, leave it.  No I/O
 * in here.
 */
#include "lock/turn.h"

#include <utlist.h>

#include "base/clock.h"
#include "base/error.h"
#include "lock/deadlock.h"
#include "lock/overdue.h"

/* The caller of each static function here holds the slot's mutex. */

static void list(struct lk_part *part)
{
    DL_APPEND2(part->slot->parts, part, previous, next);
    part->is_listed = true;
}

static void unlist(struct lk_part *part)
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
        if (part->state == LK_PART_QUEUED &&
            !lk_waiter_is_cancelled(part->waiter))
            return part;
    }
    return NULL;
}

void lk_wake_first(const struct lk_slot *slot)
{
    struct lk_part *first = lk_first_queued(slot);

    if (first != NULL)
        lk_waiter_wake(first->waiter, LK_WAKE_LOOK);
}

void lk_dequeue(struct lk_part *part, enum lk_part_state state,
                enum lk_wake_reason reason)
{
    part->state = state;
    lk_waiter_wake(part->waiter, reason);
}

/* Return whether the owner is a handle that holds the lock already, or waits
 * for it in another call. */
static bool is_used_twice(const struct lk_part *self)
{
    const struct lk_slot *slot = self->slot;
    const struct lk_part *part;

    if (slot->store->options.ownership != SQLOCK_OWNED_BY_HANDLE)
        return false;
    if (lk_is_owned_by(slot, self->owner))
        return true;
    DL_FOREACH2(slot->parts, part, next)
    {
        if (part != self && part->owner == self->owner &&
            !part->waiter->is_abandoned)
            return true;
    }
    return false;
}

/* Return whether a nested acquire asks for something that the first acquire,
 * with which it shares the lease, did not ask for. */
static bool wants_more(const struct lk_slot *slot,
                       const sqlock_acquire_options *wanted)
{
    const sqlock_acquire_options *has = &slot->asked;
    uint32_t usual_ms = slot->store->options.ttl_ms;

    return (wanted->ttl_ms != has->ttl_ms && wanted->ttl_ms != usual_ms) ||
           (wanted->auto_renew && !has->auto_renew) ||
           (wanted->fenced && !has->fenced) ||
           (wanted->max_hold_ms != 0 &&
            wanted->max_hold_ms != has->max_hold_ms) ||
           (wanted->on_lost != NULL &&
            (wanted->on_lost != has->on_lost ||
             wanted->lost_context != has->lost_context));
}

static int enter_again(struct lk_part *part, sqlock_error *err)
{
    struct lk_slot *slot = part->slot;

    if (slot->lost == SQLOCK_ELOST)
        return lk_error(err, SQLOCK_ELOST,
                        "the lease of this lock is lost: release it first");
    if (lk_remaining_ns(slot) == 0)
        return lk_error(err, SQLOCK_EEXPIRED,
                        "the lease of this lock has expired: release it first");
    if (slot->hold_count == UINT32_MAX)
        return lk_error(
            err, SQLOCK_EINVAL,
            "the lock has been acquired too often without a release");
    if (wants_more(slot, part->waiter->options))
        return lk_error(err, SQLOCK_EINVAL,
                        "the lock is already held with other options: set them "
                        "in the first acquire only");
    slot->hold_count++;
    part->grant = slot->grant;
    part->state = LK_PART_NESTED;
    if (slot->is_left_behind && !part->waiter->is_abandoned) {
        slot->is_left_behind = false;
        lk_let_all_in(slot); /* they waited for its end, see is_ours() */
    }
    return 0;
}

/* Return whether the part's owner has the lock.  A lease that an abandoned
 * request of the registry got, and is about to release, is only ours if the
 * acquire asks for nothing more; otherwise the part waits for its end. */
static bool is_ours(const struct lk_part *part)
{
    const struct lk_slot *slot = part->slot;

    if (lk_is_owned_by(slot, part->owner))
        return true;
    return slot->phase == LK_OCCUPIED && slot->owner == part->owner &&
           slot->store->options.ownership == SQLOCK_OWNED_BY_REGISTRY &&
           slot->hold_count > 0 && lk_remaining_ns(slot) > 0 &&
           !wants_more(slot, part->waiter->options);
}

static void take_turn(struct lk_part *part)
{
    part->slot->phase = LK_BUSY;
    part->slot->turn = part;
    part->state = LK_PART_TURN;
}

static int not_in_time(const struct lk_part *part, sqlock_error *err)
{
    const struct lk_slot *slot = part->slot;

    if (slot->outage == 0)
        return lk_not_in_time(part->waiter->wait_ms, err);
    return lk_error(err, slot->outage,
                    "%s: another thread of this process is already trying to "
                    "reach it for this lock",
                    sqlock_strerror(slot->outage));
}

/* Append the part to the FIFO. */
static void queue(struct lk_part *part)
{
    lk_waiter_prepare(part->waiter);
    unlist(part);
    list(part);
    part->state = LK_PART_QUEUED;
}

static int enter(struct lk_part *part, bool may_queue, sqlock_error *err)
{
    struct lk_slot *slot = part->slot;
    const struct lk_waiter *self = part->waiter;
    const struct lk_overdue *overdue = lk_overdue_of(slot, part->owner);

    if (is_used_twice(part))
        return lk_error(err, SQLOCK_EINUSE,
                        "this handle already holds the lock or waits for it: "
                        "obtain a handle for each owner");
    if (is_ours(part))
        return enter_again(part, err);
    if (overdue != NULL)
        return lk_error(err, overdue->lost,
                        "the lease of this lock is over: release it first");
    if (lk_first_queued(slot) == NULL && lk_is_overdue(slot))
        (void)lk_set_aside(slot);
    if (slot->phase == LK_FREE)
        take_turn(part);
    else if (self->wait_ms == 0 ||
             (slot->outage != 0 && self->options->fail_fast))
        return not_in_time(part, err);
    else if (may_queue)
        queue(part);
    return 0;
}

int lk_enter(struct lk_part *part, bool may_queue, enum lk_part_state *state,
             sqlock_error *err)
{
    struct lk_slot *slot = part->slot;
    int rc;

    pthread_mutex_lock(&slot->mutex);
    rc = enter(part, may_queue, err);
    if (!part->is_listed)
        list(part);
    *state = part->state;
    pthread_mutex_unlock(&slot->mutex);
    return rc;
}

/* Take the turn if the holder's lease is over; otherwise leave the FIFO if the
 * wait is cancelled, out of time or would never end.  Return 0 with the turn,
 * ECANCELED, ETIMEDOUT, EDEADLOCK or the code of an outage; or LK_SUSPENDED:
 * the part stays in the FIFO. */
static int leave_queue(struct lk_part *part, sqlock_error *err)
{
    struct lk_slot *slot = part->slot;
    int rc = 0;

    if (lk_waiter_is_cancelled(part->waiter))
        rc = lk_canceled(err);
    else if (lk_first_queued(slot) == part && lk_is_overdue(slot) &&
             lk_set_aside(slot))
        take_turn(part);
    else if (part->waiter->is_deadlocked)
        rc = lk_deadlock(part, err);
    else if (sqlock_monotonic_ns() >= part->waiter->deadline_ns)
        rc = not_in_time(part, err);
    else
        return LK_SUSPENDED;
    if (rc == 0)
        return 0;
    part->state = LK_PART_OUTSIDE;
    if (lk_is_overdue(slot)) /* pass on a wake-up that the part may have got */
        lk_wake_first(slot);
    return rc;
}

int lk_await_turn(struct lk_part *part, enum lk_part_state *state,
                  sqlock_error *err)
{
    struct lk_slot *slot = part->slot;
    struct lk_waiter *self = part->waiter;
    int rc = LK_SUSPENDED;
    int parked;

    for (;;) {
        int64_t until_ns;
        bool is_chosen;

        pthread_mutex_lock(&slot->mutex);
        if (part->state == LK_PART_QUEUED)
            rc = leave_queue(part, err);
        else if (part->state != LK_PART_CHOSEN)
            rc = 0;
        *state = part->state;
        until_ns = lk_sooner(self->deadline_ns, lk_overdue_at(slot));
        if (rc == LK_SUSPENDED && *state == LK_PART_QUEUED)
            lk_waiter_prepare(self);
        pthread_mutex_unlock(&slot->mutex);
        if (rc != LK_SUSPENDED)
            return rc;
        is_chosen = *state == LK_PART_CHOSEN; /* a wake-up is under way */
        parked =
            lk_waiter_park(self, is_chosen ? LK_NEVER : until_ns, !is_chosen);
        if (parked != 0)
            return parked;
    }
}

static void step_back(struct lk_part *part)
{
    if (part->state == LK_PART_TURN)
        lk_leave(part->slot);
    part->state = LK_PART_OUTSIDE;
}

void lk_step_back(struct lk_part *part)
{
    pthread_mutex_lock(&part->slot->mutex);
    step_back(part);
    pthread_mutex_unlock(&part->slot->mutex);
}

void lk_part_end(struct lk_part *part)
{
    struct lk_slot *slot = part->slot;

    if (slot == NULL)
        return;
    pthread_mutex_lock(&slot->mutex);
    if (part->state == LK_PART_TURN)
        step_back(part);
    unlist(part);
    pthread_mutex_unlock(&slot->mutex);
}

void lk_note_outage(struct lk_slot *slot, int rc)
{
    struct lk_part *part;

    /* nothing was sent for the other waiters */
    if (rc == SQLOCK_EUNCERTAIN)
        rc = SQLOCK_EUNREACHABLE;
    pthread_mutex_lock(&slot->mutex);
    slot->outage = rc;
    DL_FOREACH2(slot->parts, part, next)
    {
        if (rc != 0 && part->state == LK_PART_QUEUED &&
            part->waiter->options->fail_fast)
            lk_dequeue(part, LK_PART_OUTSIDE, LK_WAKE_RETRY);
    }
    pthread_mutex_unlock(&slot->mutex);
}
