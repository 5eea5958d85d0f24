/*
 * slot.c - turns: enter a slot, wait in its FIFO, leave it, hold (slot.h).  No
 * I/O in here.
 */
#include "lock/slot.h"

#include <stdlib.h>
#include <utlist.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/thread.h"
#include "lock/deadlock.h"
#include "lock/hold.h"
#include "lock/part.h"
#include "lock/peers.h"
#include "lock/registry.h"

pthread_mutex_t lk_mutex = PTHREAD_MUTEX_INITIALIZER;
LK_FREE_IN_CHILD(lk_mutex)

/* Look at the holder's lease again after this time at the latest: while the
 * machine is suspended, the lease goes on, but not the clock of a sleep. */
#define SUSPENDED_NS (10000 * LK_NS_PER_MS)

/* The caller of each function down to the interface of turns holds the
 * mutex. */

/* Begin a turn of the part, or of nobody. */
static void begin_turn(struct lk_slot *slot, struct lk_part *part)
{
    slot->handoffs = 0;
    slot->outage = 0;
    slot->turn = part;
}

static bool join(struct lk_part *part)
{
    return !lk_peers_are_due(part->slot) && lk_join(part);
}

void lk_pass_turn(struct lk_slot *slot)
{
    struct lk_part *next = slot->turn;

    if (next == NULL || next->state != LK_PART_CHOSEN) {
        begin_turn(slot, NULL);
        next = lk_first_queued(slot);
        while (next != NULL && join(next))
            next = lk_first_queued(slot);
        if (slot->is_asked)
            return; /* the one that asks lets the next begin */
    }
    begin_turn(slot, next);
    if (next != NULL)
        lk_part_dequeue(next, LK_PART_TURN, LK_WAKE_TURN);
}

void lk_leave(struct lk_part *part)
{
    if (part->state == LK_PART_TURN)
        lk_pass_turn(part->slot);
    lk_part_go_to(part, LK_PART_OUTSIDE);
    lk_wake_in_time(part->slot); /* another may be the first now */
}

/* Do not hand off a lease that may be over, nor too often in a row: other
 * processes wait as well. */
struct lk_part *lk_choose(struct lk_slot *slot)
{
    struct lk_part *next = lk_first_queued(slot);

    if (slot->handoffs >= LK_HANDOFFS_MAX || lk_peers_are_due(slot) ||
        lk_remaining_ns(lk_present(slot)) == 0 || next == NULL ||
        !next->may_be_given)
        return NULL;
    lk_part_go_to(next, LK_PART_CHOSEN);
    slot->turn = next;
    return next;
}

void lk_slot_grant(struct lk_part *part, const struct lk_lease *lease)
{
    struct lk_slot *slot = part->slot;

    lk_part_holds(part, lease);
    slot->joined = 0;
    if (lease->asked.weight > 0)
        lk_pass_turn(slot);
    lk_wake_in_time(slot); /* this lease may be shorter than the last one */
    if (slot->store->options.ownership == SQLOCK_OWNED_BY_REGISTRY)
        lk_let_all_in(slot);
}

void lk_joined(struct lk_part *part, bool is_alone)
{
    struct lk_slot *slot = part->slot;
    const struct lk_hold *own = lk_hold_by_grant(slot, part->grant);
    struct lk_hold *hold;

    part->asks = false;
    slot->is_asked = false;
    if (is_alone)
        slot->joined = 0;
    DL_FOREACH(slot->holds, hold)
    {
        if (!is_alone && own != NULL && lk_is_same_lease(hold, own))
            hold->is_closed = true;
    }
    if (slot->turn == NULL && lk_present(slot) == NULL)
        lk_pass_turn(slot);
}

/* --- entering --- */

/* Return whether the owner is a handle that holds the lock already, or is
 * acquiring it in another call. */
static bool is_used_twice(const struct lk_part *self)
{
    const struct lk_slot *slot = self->slot;
    const struct lk_part *part;

    if (slot->store->options.ownership != SQLOCK_OWNED_BY_HANDLE)
        return false;
    if (lk_hold_of(slot, self->owner) != NULL)
        return true;
    DL_FOREACH2(slot->parts, part, next)
    {
        if (part != self && part->owner == self->owner &&
            !part->waiter->is_abandoned)
            return true;
    }
    return false;
}

static int used_twice(sqlock_error *err)
{
    return lk_error(err, SQLOCK_EINUSE,
                    "this handle already holds the lock or waits for it: "
                    "obtain a handle for each owner");
}

/* Return whether a nested acquire asks for something that the first acquire,
 * with which it shares the lease, did not ask for. */
static bool wants_more(const struct lk_hold *hold, const struct lk_part *part)
{
    const sqlock_acquire_options *wanted = part->waiter->options;
    const sqlock_acquire_options *has = &hold->asked;
    uint32_t usual_ms = hold->slot->store->options.ttl_ms;

    return (wanted->ttl_ms != has->ttl_ms && wanted->ttl_ms != usual_ms) ||
           part->weight > hold->lease.asked.weight ||
           (wanted->auto_renew && !has->auto_renew) ||
           (wanted->fenced && !has->fenced) ||
           (wanted->max_hold_ms != 0 &&
            wanted->max_hold_ms != has->max_hold_ms) ||
           (wanted->on_lost != NULL &&
            (wanted->on_lost != has->on_lost ||
             wanted->lost_context != has->lost_context));
}

static int nest(struct lk_part *part, struct lk_hold *hold, sqlock_error *err)
{
    if (lk_is_share(hold) != (part->weight > 0))
        return lk_error(err, SQLOCK_EINVAL,
                        lk_is_share(hold)
                            ? "the caller shares this lock: release it, then "
                              "acquire it alone"
                            : "the caller has this lock alone: use "
                              "sqlock_downgrade() to share it");
    if (hold->lost == SQLOCK_ELOST)
        return lk_error(err, SQLOCK_ELOST,
                        "the lease of this lock is lost: release it first");
    if (lk_remaining_ns(hold) == 0)
        return lk_error(err, SQLOCK_EEXPIRED,
                        "the lease of this lock has expired: release it first");
    if (hold->count == UINT32_MAX)
        return lk_error(
            err, SQLOCK_EINVAL,
            "the lock has been acquired too often without a release");
    if (wants_more(hold, part))
        return lk_error(err, SQLOCK_EINVAL,
                        "the lock is already held with other options: set them "
                        "in the first acquire only");
    hold->count++;
    part->grant = hold->grant;
    lk_part_go_to(part, LK_PART_NESTED);
    if (hold->is_left_behind && !part->waiter->is_abandoned) {
        hold->is_left_behind = false;
        lk_let_all_in(part->slot); /* they waited for its end, see ours() */
    }
    return 0;
}

/* Return the hold in which the part nests; NULL: none.  A lease that an
 * abandoned request of the registry got, and is about to release, is only ours
 * if the acquire asks for nothing more; otherwise the part waits for its
 * end. */
static struct lk_hold *ours(const struct lk_part *part)
{
    const struct lk_slot *slot = part->slot;
    struct lk_hold *hold = lk_hold_of(slot, part->owner);

    if (hold != NULL)
        return hold;
    hold = lk_present(slot);
    if (hold != NULL && hold->state == LK_HOLD_HELD &&
        hold->owner == part->owner &&
        slot->store->options.ownership == SQLOCK_OWNED_BY_REGISTRY &&
        hold->count > 0 && lk_remaining_ns(hold) > 0 && !wants_more(hold, part))
        return hold;
    return NULL;
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

/* Put the part at the end of the FIFO. */
static void queue(struct lk_part *part)
{
    part->waiter->reason = LK_WAKE_NONE;
    part->looks_boot_ns = 0; /* when it begins to wait */
    lk_part_unlist(part);
    lk_part_list(part);
    lk_part_go_to(part, LK_PART_QUEUED);
}

static void take_turn(struct lk_part *part)
{
    part->slot->turn = part;
    lk_part_go_to(part, LK_PART_TURN);
}

static int enter(struct lk_part *part, bool may_queue, sqlock_error *err)
{
    struct lk_slot *slot = part->slot;
    const struct lk_waiter *self = part->waiter;
    const struct lk_hold *aside = lk_aside_of(slot, part->owner);
    struct lk_hold *hold = ours(part);

    if (is_used_twice(part)) /* since its request was abandoned */
        return used_twice(err);
    if (hold != NULL)
        return nest(part, hold, err);
    if (aside != NULL)
        return lk_error(err, aside->lost,
                        "the lease of this lock is over: release it first");
    if (part->hold == NULL)
        part->hold = calloc(1, sizeof *part->hold);
    if (part->hold == NULL)
        return lk_error_nomem(err);
    if (lk_first_queued(slot) == NULL && lk_is_overdue(slot))
        lk_set_aside(slot);
    if (slot->turn == NULL && lk_first_queued(slot) == NULL && join(part))
        return 0;
    if (slot->turn == NULL && lk_present(slot) == NULL &&
        (!slot->is_asked || self->wait_ms == 0))
        take_turn(part);
    else if (self->wait_ms == 0 ||
             (slot->outage != 0 && self->options->fail_fast))
        return not_in_time(part, err);
    else if (may_queue)
        queue(part);
    return 0;
}

/* --- waiting in the FIFO --- */

/* Take the turn if the holder's lease is over; otherwise leave the FIFO if the
 * wait is cancelled, out of time or would never end.  Return 0 with the turn,
 * ECANCELED, ETIMEDOUT, EDEADLOCK or the code of an outage; or LK_SUSPENDED:
 * the part stays in the FIFO. */
static int leave_queue(struct lk_part *part, sqlock_error *err)
{
    struct lk_slot *slot = part->slot;
    int rc = 0;

    if (part->waiter->is_cancelled) {
        rc = lk_canceled(err);
    } else if (lk_first_queued(slot) == part && lk_is_overdue(slot)) {
        lk_set_aside(slot);
        take_turn(part);
    } else if (part->waiter->is_deadlocked) {
        rc = lk_deadlock(part, err);
    } else if (sqlock_monotonic_ns() >= part->waiter->deadline_ns) {
        rc = not_in_time(part, err);
    } else {
        return LK_SUSPENDED;
    }
    if (rc == 0)
        return 0;
    lk_part_go_to(part, LK_PART_OUTSIDE);
    lk_wake_in_time(slot); /* another may be the first now */
    return rc;
}

/* Return when the part, which stays in the FIFO, is to look at the holder's
 * lease, CLOCK_MONOTONIC, and note it.  One that is overdue is left to the
 * first. */
static int64_t looks_at(struct lk_part *part)
{
    int64_t left_ns = SUSPENDED_NS;

    part->looks_boot_ns = LK_NEVER;
    if (lk_first_queued(part->slot) == part || !lk_is_overdue(part->slot))
        part->looks_boot_ns = lk_overdue_at(part->slot);
    if (part->looks_boot_ns != LK_NEVER)
        left_ns = lk_sooner(left_ns, part->looks_boot_ns - lk_boottime_ns());
    return sqlock_monotonic_ns() + left_ns;
}

/* Wait until the state of the part changes, which nothing but its wake-up does
 * once the part is chosen.  A reason of before that is over: a thread that was
 * woken to look may be chosen before it runs. */
static int await_turn(struct lk_part *part, sqlock_error *err)
{
    struct lk_waiter *self = part->waiter;

    for (;;) {
        int64_t until_ns = LK_NEVER;
        bool is_queued = part->state == LK_PART_QUEUED;
        int rc;

        if (!is_queued && part->state != LK_PART_CHOSEN)
            return 0;
        if (is_queued) {
            rc = leave_queue(part, err);
            if (rc != LK_SUSPENDED)
                return rc;
            until_ns = lk_sooner(self->deadline_ns, looks_at(part));
        }
        self->reason = LK_WAKE_NONE;
        rc = lk_waiter_park(self, until_ns, is_queued);
        if (rc != 0)
            return rc;
    }
}

/* --- interface of turns; the caller does not hold the mutex --- */

int lk_parts_begin(struct lk_part *parts, size_t count, sqlock_error *err)
{
    int rc = 0;

    pthread_mutex_lock(&lk_mutex);
    for (size_t i = 0; rc == 0 && i < count; i++) {
        if (is_used_twice(&parts[i]))
            rc = parts[i].rc = used_twice(err);
    }
    for (size_t i = 0; rc == 0 && i < count; i++)
        lk_part_list(&parts[i]);
    pthread_mutex_unlock(&lk_mutex);
    return rc;
}

int lk_enter(struct lk_part *part, bool may_queue, enum lk_part_state *state,
             sqlock_error *err)
{
    int rc;

    pthread_mutex_lock(&lk_mutex);
    rc = enter(part, may_queue, err);
    *state = part->state;
    pthread_mutex_unlock(&lk_mutex);
    return rc;
}

int lk_await_turn(struct lk_part *part, enum lk_part_state *state,
                  sqlock_error *err)
{
    int rc;

    pthread_mutex_lock(&lk_mutex);
    rc = await_turn(part, err);
    *state = part->state;
    if (rc == 0) /* a circle that was seen is no more */
        part->waiter->is_deadlocked = false;
    pthread_mutex_unlock(&lk_mutex);
    return rc;
}

int lk_part_not_in_time(const struct lk_part *part, sqlock_error *err)
{
    int rc;

    pthread_mutex_lock(&lk_mutex);
    rc = not_in_time(part, err);
    pthread_mutex_unlock(&lk_mutex);
    return rc;
}

void lk_step_back(struct lk_part *part)
{
    pthread_mutex_lock(&lk_mutex);
    lk_leave(part);
    pthread_mutex_unlock(&lk_mutex);
}

void lk_part_end(struct lk_part *part)
{
    pthread_mutex_lock(&lk_mutex);
    if (part->state == LK_PART_TURN)
        lk_leave(part);
    lk_part_unlist(part);
    pthread_mutex_unlock(&lk_mutex);
    free(part->hold);
}

void lk_note_outage(struct lk_slot *slot, int rc)
{
    struct lk_part *part;

    /* nothing was sent for the other waiters */
    if (rc == SQLOCK_EUNCERTAIN)
        rc = SQLOCK_EUNREACHABLE;
    pthread_mutex_lock(&lk_mutex);
    slot->outage = rc;
    DL_FOREACH2(slot->parts, part, next)
    {
        if (rc != 0 && part->state == LK_PART_QUEUED &&
            part->waiter->options->fail_fast)
            lk_part_retry(part);
    }
    lk_wake_in_time(slot);
    pthread_mutex_unlock(&lk_mutex);
}
